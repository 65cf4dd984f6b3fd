# Headers of others that most files include, parsed once (-DPRECOMPILE=ON, clang only). A file must still include what it
# uses: the builds with sanitizers are made without this, and so is every build with ccache, which does better.

option(PRECOMPILE "Parse the headers of others once (clang only)" OFF)
set(PRECOMPILED
  <algorithm> <array> <atomic> <charconv> <chrono> <coroutine> <deque> <expected> <filesystem> <fstream> <functional> <map>
  <memory> <mutex> <optional> <random> <set> <span> <sstream> <string> <string_view> <thread> <unordered_map> <utility>
  <variant> <vector>
  <asio/co_spawn.hpp> <asio/experimental/as_tuple.hpp> <asio/experimental/awaitable_operators.hpp> <asio/io_context.hpp>
  <asio/ip/tcp.hpp> <asio/steady_timer.hpp> <asio/use_awaitable.hpp> <asio/write.hpp>
  <fmt/format.h> <spdlog/spdlog.h>)

# precompile(DIRECTORY): for all programs and libraries in and below it. Tests are compiled with other options, and so have
# their own.
function(precompile directory)
  get_property(folders DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
  foreach(folder ${folders})
    precompile(${folder})
  endforeach()
  get_property(targets DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    if(NOT type MATCHES "(STATIC|OBJECT)_LIBRARY|EXECUTABLE")
      continue()
    endif()
    target_compile_options(${target} PRIVATE -pthread)  # must be the same everywhere, and gRPC brings it along
    if(target MATCHES "^precompiled")
      continue()
    elseif(target MATCHES "_test$")
      target_precompile_headers(${target} REUSE_FROM precompiled_for_tests)
    else()
      target_precompile_headers(${target} REUSE_FROM precompiled)
    endif()
  endforeach()
endfunction()

if(PRECOMPILE AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled.cc CONTENT "")
  foreach(name precompiled precompiled_for_tests)
    add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/precompiled.cc)
    target_link_libraries(${name} PRIVATE project_options asio fmt::fmt spdlog::spdlog)
    target_precompile_headers(${name} PRIVATE ${PRECOMPILED})
  endforeach()
  target_compile_options(precompiled_for_tests PRIVATE -O0)
  target_link_libraries(precompiled_for_tests PRIVATE GTest::gtest)
  target_precompile_headers(precompiled_for_tests PRIVATE <gtest/gtest.h>)
  precompile(${CMAKE_SOURCE_DIR})
endif()
