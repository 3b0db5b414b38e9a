# SPDX-License-Identifier: Apache-2.0
# What the scripts of these tests share.

# run(<command>...) : its output in `output`; a failure ends the script with it.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}\nended with ${result}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# no_flags_leak(<build folder> <source>) : the consumer's file is compiled with the folder of our headers and nothing else
# of ours. BUILD_TYPE is empty in such builds, so that no flags of CMake's own are there either.
function(no_flags_leak build source)
  file(READ "${build}/compile_commands.json" commands)
  string(JSON count LENGTH "${commands}")
  math(EXPR last "${count} - 1")
  foreach(index RANGE ${last})
    string(JSON file GET "${commands}" ${index} file)
    if(file MATCHES "${source}$")
      string(JSON command GET "${commands}" ${index} command)
      string(REGEX REPLACE "(^[^ ]+| -I[^ ]+/include| -isystem [^ ]+/include| -o [^ ]+| -c [^ ]+| -O[^ ]+| -g| -DNDEBUG| -fPIC| -D[a-z]+_EXPORTS)" ""
        foreign "${command}")
      if(NOT foreign STREQUAL "")
        message(FATAL_ERROR "libhorus adds '${foreign}' to its users' compile command: ${command}")
      endif()
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "${build}/compile_commands.json: no ${source}")
endfunction()

# refuses_static() : asked for the archive, which the installation below PREFIX lacks, the package names the option that
# builds it.
function(refuses_static)
  execute_process(COMMAND "${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/static" -B "${WORK}/without" -G "${GENERATOR}"
    -D "CMAKE_PREFIX_PATH=${PREFIX}" -D "CMAKE_C_COMPILER=${C_COMPILER}" -D "CMAKE_CXX_COMPILER=${CXX_COMPILER}"
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " told "${output}")
  if(result EQUAL 0 OR NOT told MATCHES "expected libhorus.a, found an installation without it: build libhorus with -DHORUS_STATIC=ON")
    message(FATAL_ERROR "asked for the archive, an installation without it said:\n${output}")
  endif()
endfunction()

# need_pkg_config() : sets PKG_CONFIG and shows it the installation below PREFIX, or ends the script, saying so. A macro, so
# that return() leaves the script.
macro(need_pkg_config)
  find_program(PKG_CONFIG NAMES pkg-config pkgconf)
  if(NOT PKG_CONFIG)
    message("SKIPPED: the part with pkg-config, which is not installed (apt: pkg-config)")
    return()
  endif()
  set(ENV{PKG_CONFIG_PATH} "${PREFIX}/${LIBDIR}/pkgconfig")
endmacro()
