# The headers' plain comments as Doxygen's: before a declaration, or behind one on its line.
s,^( *)/\* ,\1/** ,
s,^( *)// ,\1/// ,
s#([;,]) +/\* #\1 /**< #
s#([;,]) +// #\1 ///< #
