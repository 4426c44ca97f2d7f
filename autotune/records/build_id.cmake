# Writes a source with the digest of the code that decides what a record means: what a schedule's steps do, how loops
# become machine code, and the default schedules beside which gains were measured. Comments, blank lines and indentation
# do not count, so that who explains his code keeps his records.
#
#   cmake -DROOT=... -DOUT=... -DCODE_GENERATOR=LLVM-19.1.7 -P build_id.cmake
include(${CMAKE_CURRENT_LIST_DIR}/build_id_sources.cmake)
ts_record_sources(${ROOT} sources)
set(digests "${CODE_GENERATOR}")
foreach(source IN LISTS sources)
  file(READ ${ROOT}/${source} text)
  # What stands behind two slashes inside of a text goes too; that changes no code.
  string(REGEX REPLACE "//[^\n]*" "" text "${text}")
  string(REGEX REPLACE "[ \t]*\n[ \t\n]*" "\n" text "${text}")
  string(STRIP "${text}" text)
  string(SHA256 digest "${text}")
  string(APPEND digests "${source} ${digest}\n")
endforeach()
string(SHA256 digest "${digests}")
string(SUBSTRING ${digest} 0 12 digest)
set(code "#include \"autotune/records/build_id.h\"\n\nnamespace tensmith {\n\n")
string(APPEND code "const char* build_id() { return \"${digest}\"; }\n\n}  // namespace tensmith\n")
set(before "")
if(EXISTS ${OUT})
  file(READ ${OUT} before)
endif()
if(NOT code STREQUAL before)
  file(WRITE ${OUT} "${code}")
endif()
