# _core: the extension module tricorn._core.
if(NOT Python_Development.Module_FOUND)
  message(FATAL_ERROR "the headers of ${Python_EXECUTABLE} are missing (Debian: apt-get install python3-dev)")
endif()
execute_process(COMMAND ${Python_EXECUTABLE} -m pybind11 --cmakedir
                OUTPUT_VARIABLE pybind11_DIR OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT pybind11_DIR)
  message(FATAL_ERROR "pybind11 is missing in ${Python_EXECUTABLE} (./dev build installs it into .venv)")
endif()
find_package(pybind11 3 CONFIG REQUIRED)

file(GLOB_RECURSE extension_sources CONFIGURE_DEPENDS src/py/*.cc)
pybind11_add_module(_core MODULE NO_EXTRAS ${extension_sources})  # no extras: LTO is ours to choose, symbols stay
target_link_libraries(_core PRIVATE core)
install(TARGETS _core LIBRARY DESTINATION tricorn)
