# Target llhttp, 9.3 or newer (8.x accepts a bare CR). No third-party source is kept in this repository, so, in order:
# -DTRICORN_LLHTTP_DIR=<folder with include/ and src/>; the system's own; the one inside the httptools sdist,
# which pip downloads from the user's own index, by hash, once for all build folders.
set(TRICORN_LLHTTP_DIR "" CACHE PATH "llhttp sources: a folder with include/llhttp.h and src/*.c")
set(llhttp_minimum 9.3.0)
set(httptools_version 0.9.0)
set(httptools_sha256 d484ebb7e3a3f3597b0f645fbd1b85633674ca808c1f5ba11c2caf7c66f5c8b6)

# Leaves the version that llhttp.h states in ${out}.
function(llhttp_version header out)
  file(STRINGS ${header} lines REGEX "^#define LLHTTP_VERSION_(MAJOR|MINOR|PATCH) ")
  list(TRANSFORM lines REPLACE "^[^ ]+ [^ ]+ +" "")
  list(JOIN lines "." version)
  set(${out} ${version} PARENT_SCOPE)
endfunction()

# Leaves the folder of the downloaded sources in ${out}.
function(fetch_llhttp out)
  set(deps ${CMAKE_SOURCE_DIR}/build/_deps)
  set(root ${deps}/httptools-${httptools_version})
  set(${out} ${root}/vendor/llhttp PARENT_SCOPE)
  file(MAKE_DIRECTORY ${deps})
  file(LOCK ${deps}/lock GUARD FUNCTION)
  if(EXISTS ${root}/complete)
    return()
  endif()
  message(STATUS "llhttp: downloading the httptools ${httptools_version} sdist")
  file(WRITE ${deps}/requirements.txt "httptools==${httptools_version} --hash=sha256:${httptools_sha256}\n")
  execute_process(
    COMMAND ${Python_EXECUTABLE} -m pip download --quiet --no-deps --no-binary httptools --require-hashes
            --requirement ${deps}/requirements.txt --dest ${deps}
    RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(failed)
    message(FATAL_ERROR "llhttp ${llhttp_minimum} or newer is missing and `pip download httptools` failed "
                        "(run ./dev build, or give -DTRICORN_LLHTTP_DIR=<sources>)\n${output}")
  endif()
  set(sdist ${deps}/httptools-${httptools_version}.tar.gz)
  file(ARCHIVE_EXTRACT INPUT ${sdist} DESTINATION ${deps} PATTERNS "*/vendor/llhttp/*")
  file(TOUCH ${root}/complete)
endfunction()

if(NOT TRICORN_LLHTTP_DIR)
  find_path(LLHTTP_INCLUDE_DIR llhttp.h)
  find_library(LLHTTP_LIBRARY llhttp)
  if(LLHTTP_INCLUDE_DIR AND LLHTTP_LIBRARY)
    llhttp_version(${LLHTTP_INCLUDE_DIR}/llhttp.h version)
    if(version VERSION_GREATER_EQUAL llhttp_minimum)
      message(STATUS "llhttp ${version}: ${LLHTTP_LIBRARY}")
      add_library(llhttp UNKNOWN IMPORTED)
      set_target_properties(llhttp PROPERTIES
        IMPORTED_LOCATION ${LLHTTP_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${LLHTTP_INCLUDE_DIR})
      return()
    endif()
  endif()
endif()

set(llhttp_dir ${TRICORN_LLHTTP_DIR})
if(NOT llhttp_dir)
  fetch_llhttp(llhttp_dir)
endif()
llhttp_version(${llhttp_dir}/include/llhttp.h version)
if(version VERSION_LESS llhttp_minimum)
  message(FATAL_ERROR "llhttp ${version} in ${llhttp_dir} is too old: ${llhttp_minimum} or newer is needed")
endif()
message(STATUS "llhttp ${version}: ${llhttp_dir}")
add_library(llhttp STATIC ${llhttp_dir}/src/api.c ${llhttp_dir}/src/http.c ${llhttp_dir}/src/llhttp.c)
target_include_directories(llhttp SYSTEM PUBLIC ${llhttp_dir}/include)
