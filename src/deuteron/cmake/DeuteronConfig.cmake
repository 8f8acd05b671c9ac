# find_package(Deuteron): kernels as targets of CMake.
#
#   find_package(Deuteron REQUIRED)
#   deuteron_add_library(norms MANIFEST deuteron.toml TARGETS cpu cuda:80 cuda:90 STATIC)
#   target_link_libraries(app PRIVATE norms)
#
# It is found where pip has installed Deuteron in an environment that is on PATH, or by
# -DDeuteron_DIR=$(deuteron --cmake-dir). Deuteron_EXECUTABLE is the command; it is looked for on PATH.
cmake_minimum_required(VERSION 3.20)
include("${CMAKE_CURRENT_LIST_DIR}/DeuteronAddLibrary.cmake")

find_program(Deuteron_EXECUTABLE deuteron DOC "The command `deuteron`, which compiles kernels")
set(Deuteron_FOUND TRUE)
