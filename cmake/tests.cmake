# unit: all of tests/unit in one GoogleTest binary.
find_package(GTest)
if(NOT GTest_FOUND)
  message(FATAL_ERROR "GoogleTest is missing (Debian: apt-get install libgtest-dev)")
endif()

file(GLOB_RECURSE unit_sources CONFIGURE_DEPENDS tests/unit/*.cc)
if(unit_sources)
  add_executable(unit ${unit_sources})
  target_include_directories(unit PRIVATE tests/unit)
  target_link_libraries(unit PRIVATE core GTest::gtest GTest::gtest_main)
  add_test(NAME unit COMMAND unit)
endif()
