# Compiler gate, language level, warnings and sanitizers, carried by the INTERFACE target `project_options`.

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 19)
    message(FATAL_ERROR "clang ${CMAKE_CXX_COMPILER_VERSION} has no usable std::expected. Use clang 19 or newer, "
                        "or g++ 13 or newer: cmake -DCMAKE_CXX_COMPILER=clang++-19")
  endif()
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    message(FATAL_ERROR "g++ ${CMAKE_CXX_COMPILER_VERSION} destroys temporaries in co_await expressions twice, without a "
                        "warning. Use g++ 13 or newer, or clang 19 or newer: cmake -DCMAKE_CXX_COMPILER=clang++-19")
  endif()
else()
  message(FATAL_ERROR "Compiler ${CMAKE_CXX_COMPILER_ID} is not supported. Use clang 19 or newer, or g++ 13 or newer.")
endif()

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

option(WERROR "Treat warnings as errors" OFF)
set(SANITIZE "" CACHE STRING "Sanitizers for everything: empty, 'address,undefined' or 'thread'")
option(FUZZ "Build the libFuzzer targets (clang only, with SANITIZE=address,undefined)" OFF)

add_library(project_options INTERFACE)
target_include_directories(project_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(project_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor
                       -Woverloaded-virtual -Wimplicit-fallthrough)
if(WERROR)
  target_compile_options(project_options INTERFACE -Werror)
endif()
if(SANITIZE)
  add_compile_options(-fsanitize=${SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${SANITIZE})
  if(SANITIZE MATCHES "thread")
    # TSan does not model std::atomic_thread_fence, which Asio's fenced block uses.
    add_compile_definitions(ASIO_DISABLE_FENCED_BLOCK)
  endif()
endif()
