# The sources that decide what a record means, relative to `root`, in `out`: for the digest and for when it is due.
function(ts_record_sources root out)
  set(patterns "")
  foreach(folder tensor schedule codegen)
    list(APPEND patterns ${root}/${folder}/*.h ${root}/${folder}/*.cpp ${root}/${folder}/*.def)
  endforeach()
  file(GLOB_RECURSE sources RELATIVE ${root} ${patterns})
  # The rules of the default schedules; what searches, measures and keeps records decides nothing.
  file(GLOB rules RELATIVE ${root} ${root}/autotune/*.h ${root}/autotune/*.cpp ${root}/autotune/space/*rule*
       ${root}/autotune/space/tile_decisions.*)
  list(APPEND sources ${rules})
  list(SORT sources)
  set(${out} ${sources} PARENT_SCOPE)
endfunction()
