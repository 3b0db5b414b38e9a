module libhorus.org/horus

go 1.24
