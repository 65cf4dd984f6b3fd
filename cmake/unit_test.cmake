# add_unit_test(NAME target-libraries...): builds NAME.cc beside the code into the executable NAME and registers it
# with the label `unit`. The working directory is the source root, so golden files are found by their path in the tree.
function(add_unit_test NAME)
  add_executable(${NAME} ${NAME}.cc)
  target_link_libraries(${NAME} PRIVATE project_options ${ARGN} GTest::gtest_main)
  # What is tested is optimised; the test itself need not be, and compiles in half the time.
  target_compile_options(${NAME} PRIVATE -O0)
  add_test(NAME ${NAME} COMMAND ${NAME} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${NAME} PROPERTIES LABELS unit TIMEOUT 300 PROCESSORS 2)
  set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endfunction()

# add_fuzzer(NAME target-libraries...): libFuzzer target from fuzz/NAME.cc, only with -DFUZZ=ON. `fuzzers` builds all. The
# fuzzer finds its way by the branches taken in those libraries and in base.
if(FUZZ)
  add_custom_target(fuzzers)
endif()
function(add_fuzzer NAME)
  if(FUZZ)
    add_executable(${NAME} fuzz/${NAME}.cc)
    add_dependencies(fuzzers ${NAME})
    target_link_libraries(${NAME} PRIVATE project_options ${ARGN})
    target_link_options(${NAME} PRIVATE -fsanitize=fuzzer)
    foreach(target ${NAME} base ${ARGN})
      target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
    endforeach()
    set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  endif()
endfunction()
