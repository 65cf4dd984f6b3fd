# Everything comes from the distribution's packages; cmake/packages.txt is the list that `make setup` installs.

find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(prometheus-cpp REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC REQUIRED)
find_package(GTest REQUIRED)
include(GoogleTest)
find_path(XXHASH_INCLUDE xxhash.h REQUIRED)
find_library(XXHASH_LIBRARY xxhash REQUIRED)
find_path(ASIO_INCLUDE asio.hpp REQUIRED)

# Third-party headers are SYSTEM, so that their warnings are not ours.
add_library(asio INTERFACE)
target_include_directories(asio SYSTEM INTERFACE ${ASIO_INCLUDE})
# Asio 1.22 sees clang's coroutines only when told (its own test asks for the pre-C++20 TS).
target_compile_definitions(asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED ASIO_HAS_CO_AWAIT ASIO_HAS_STD_COROUTINE)
target_link_libraries(asio INTERFACE Threads::Threads)

add_library(xxhash INTERFACE)
target_include_directories(xxhash SYSTEM INTERFACE ${XXHASH_INCLUDE})
target_link_libraries(xxhash INTERFACE ${XXHASH_LIBRARY})
