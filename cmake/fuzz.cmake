# fuzz_<name>: one binary for each tests/fuzz/<name>.cc. With Clang it is a libFuzzer target; with GCC
# replay_main.cc runs it once over each file named on the command line.
file(GLOB fuzz_sources CONFIGURE_DEPENDS tests/fuzz/*.cc)
list(FILTER fuzz_sources EXCLUDE REGEX "/replay_main\\.cc$")
foreach(source IN LISTS fuzz_sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(fuzz_${name} ${source})
  target_link_libraries(fuzz_${name} PRIVATE core)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(fuzz_${name} PRIVATE tests/fuzz/replay_main.cc)
  endif()
endforeach()
