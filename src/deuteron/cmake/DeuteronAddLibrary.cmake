# deuteron_add_library(<target> MANIFEST <deuteron.toml> [LIBRARY <name>] [TARGETS <target>...] [STATIC | SHARED]
#                      [VENDOR_DIR <folder>])
#
# A library target of the kernels that deuteron.toml declares under [library.<name>], by default that of the target's
# name. Its headers, <name>.h and <name>.hpp, are on the include path of whatever links it. TARGETS are in the place of
# those that are declared. An edited kernel, or a module that it imports, is compiled when the target is built, and only
# its own object; an edited declaration configures the project again.
#
# With VENDOR_DIR the C sources are those in <folder>/<name>, which `deuteron build <name> --sources-only -o <folder>` has
# made and which are committed: neither Deuteron nor Python is needed to build. Where they are older than the kernels the
# project does not configure. Where Deuteron is there, the target <target>_update makes them anew.

function(deuteron_add_library target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "STATIC;SHARED" "MANIFEST;LIBRARY;VENDOR_DIR" "TARGETS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "deuteron_add_library(${target}): unknown argument '${arg_UNPARSED_ARGUMENTS}'. There are "
                        "MANIFEST, LIBRARY, TARGETS, STATIC, SHARED, VENDOR_DIR")
  endif()
  if(NOT arg_MANIFEST)
    message(FATAL_ERROR "deuteron_add_library(${target}) needs MANIFEST, the deuteron.toml that declares the kernels")
  endif()
  if(arg_STATIC AND arg_SHARED)
    message(FATAL_ERROR "deuteron_add_library(${target}) is either STATIC or SHARED")
  endif()
  if(NOT CMAKE_C_COMPILER_LOADED)
    message(FATAL_ERROR "deuteron_add_library(${target}) needs the language C: project(... LANGUAGES C CXX)")
  endif()
  if(NOT arg_LIBRARY)
    set(arg_LIBRARY ${target})
  endif()
  get_filename_component(manifest "${arg_MANIFEST}" ABSOLUTE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${manifest}")

  if(arg_VENDOR_DIR)
    get_filename_component(folder "${arg_VENDOR_DIR}" ABSOLUTE)
    _deuteron_vendored(${target} "${manifest}" ${arg_LIBRARY} "${folder}" "${arg_TARGETS}")
  else()
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/deuteron")
    if(NOT arg_LIBRARY STREQUAL target)
      string(APPEND folder "/${target}") # several targets may be of one library, with other TARGETS
    endif()
    _deuteron_compiled(${target} "${manifest}" ${arg_LIBRARY} "${folder}" "${arg_TARGETS}")
  endif()

  set(kind)
  if(arg_STATIC)
    set(kind STATIC)
  elseif(arg_SHARED)
    set(kind SHARED)
  endif()
  add_library(${target} ${kind} ${sources})
  if(TARGET ${target}_kernels)
    add_dependencies(${target} ${target}_kernels)
  endif()
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${folder}/${arg_LIBRARY}> $<INSTALL_INTERFACE:include>)
  target_compile_features(${target} PRIVATE c_std_99)
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    UNITY_BUILD OFF # every source has the C runtime, as static functions
    PUBLIC_HEADER "${folder}/${arg_LIBRARY}/${arg_LIBRARY}.h;${folder}/${arg_LIBRARY}/${arg_LIBRARY}.hpp")
  target_compile_definitions(${target} PRIVATE
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,STATIC_LIBRARY>:DEUTERON_HIDDEN>)
  set(THREADS_PREFER_PTHREAD_FLAG ON)
  find_package(Threads REQUIRED)
  target_link_libraries(${target} PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
endfunction()

# Sets `sources`, and adds the target that compiles the kernels.
function(_deuteron_compiled target manifest library folder targets)
  if(NOT Deuteron_EXECUTABLE)
    message(FATAL_ERROR "deuteron_add_library(${target}): the command `deuteron` was not found. Install Deuteron, name the "
                        "command with -DDeuteron_EXECUTABLE=..., or build from committed sources with VENDOR_DIR")
  endif()
  _deuteron_command(command "${manifest}" ${library} "${folder}" "${targets}")
  execute_process(COMMAND ${command} --list-sources OUTPUT_VARIABLE found ERROR_VARIABLE said RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "deuteron_add_library(${target}):\n${said}")
  endif()
  string(STRIP "${found}" found)
  string(REPLACE "\n" ";" found "${found}")
  set(stamp "${folder}/${library}.stamp")
  string(REGEX REPLACE "\\.c(;|$)" ".h\\1" headers "${found}")
  add_custom_command(
    OUTPUT "${stamp}"
    COMMAND ${command} --sources-only --depfile "${stamp}.d" --depfile-target "${stamp}"
    COMMAND ${CMAKE_COMMAND} -E touch "${stamp}"
    DEPENDS "${manifest}"
    DEPFILE "${stamp}.d"
    COMMENT "Compiling kernels of ${library}"
    VERBATIM)
  # A command that fails is shown with all files that it makes, so those are of another one, which has nothing left to do
  # unless some of them were removed.
  add_custom_command(
    OUTPUT "${stamp}.files"
    BYPRODUCTS ${found} ${headers} "${folder}/${library}/${library}.hpp" "${folder}/${library}/${library}.json"
    COMMAND ${command} --sources-only --quiet
    COMMAND ${CMAKE_COMMAND} -E touch "${stamp}.files"
    DEPENDS "${stamp}"
    COMMENT "C sources of ${library}"
    VERBATIM)
  add_custom_target(${target}_kernels DEPENDS "${stamp}.files")
  set_source_files_properties(${found} PROPERTIES GENERATED TRUE)
  set(sources ${found} PARENT_SCOPE)
endfunction()

# Sets `sources` to the committed ones, which must be those of the present kernels.
function(_deuteron_vendored target manifest library folder targets)
  set(made "${folder}/${library}/${library}.json")
  set(update "deuteron build ${library} --sources-only -f '${manifest}' -o '${folder}'")
  foreach(name IN LISTS targets)
    string(APPEND update " -t ${name}")
  endforeach()
  if(Deuteron_EXECUTABLE)
    _deuteron_command(command "${manifest}" ${library} "${folder}" "${targets}")
    add_custom_target(${target}_update COMMAND ${command} --sources-only VERBATIM)
  endif()
  if(NOT EXISTS "${made}")
    message(FATAL_ERROR "deuteron_add_library(${target}): there is no '${made}'. Make it:\n  ${update}\n")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${made}")
  file(READ "${made}" text)
  get_filename_component(root "${manifest}" DIRECTORY)
  _deuteron_check("${text}" "declared" "${root}" "${update}")
  _deuteron_check("${text}" "files" "${folder}/${library}" "${update}")
  string(JSON count LENGTH "${text}" "variants")
  math(EXPR last "${count} - 1")
  set(found "${folder}/${library}/${library}.c")
  set(compiled_for)
  foreach(i RANGE ${last})
    string(JSON variant GET "${text}" "variants" ${i})
    _deuteron_check("${variant}" "sources;files" "${root}" "${update}")
    _deuteron_check("${variant}" "files" "${folder}/${library}" "${update}")
    string(JSON name GET "${variant}" "record" "target")
    list(APPEND compiled_for "${name}")
    string(JSON files LENGTH "${variant}" "files")
    math(EXPR last_file "${files} - 1")
    foreach(j RANGE ${last_file})
      string(JSON file MEMBER "${variant}" "files" ${j})
      if(file MATCHES "\\.c$")
        list(APPEND found "${folder}/${library}/${file}")
      endif()
    endforeach()
  endforeach()
  foreach(name IN LISTS targets)
    string(REGEX MATCH "^(cpu|cuda:[0-9]+)" device "${name}") # a record names the processor that cpu was compiled for
    if(NOT "${compiled_for}" MATCHES "(^|;)${device}(:|;|$)")
      message(FATAL_ERROR "deuteron_add_library(${target}): the committed sources in '${folder}/${library}' have no kernel "
                          "for ${name}. Make them anew:\n  ${update}\n")
    endif()
  endforeach()
  set(sources ${found} PARENT_SCOPE)
endfunction()

# Fails unless the files of a table in the JSON, by name relative to a folder, have the digests that it says.
function(_deuteron_check text keys folder update)
  string(JSON count ERROR_VARIABLE error LENGTH "${text}" ${keys})
  if(error OR count EQUAL 0)
    return()
  endif()
  math(EXPR last "${count} - 1")
  foreach(i RANGE ${last})
    string(JSON name MEMBER "${text}" ${keys} ${i})
    string(JSON digest GET "${text}" ${keys} "${name}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${folder}/${name}")
    set(actual)
    if(EXISTS "${folder}/${name}")
      file(SHA256 "${folder}/${name}" actual)
    endif()
    if(NOT actual STREQUAL digest)
      message(FATAL_ERROR "The committed sources are stale: '${folder}/${name}' is not what they were made from. "
                          "Make them anew:\n  ${update}\n")
    endif()
  endforeach()
endfunction()

function(_deuteron_command variable manifest library folder targets)
  set(command "${Deuteron_EXECUTABLE}" build ${library} -f "${manifest}" -o "${folder}")
  if(CMAKE_CROSSCOMPILING)
    list(APPEND command --architecture ${CMAKE_SYSTEM_PROCESSOR})
  endif()
  foreach(name IN LISTS targets)
    list(APPEND command -t ${name})
  endforeach()
  set(${variable} ${command} PARENT_SCOPE)
endfunction()
