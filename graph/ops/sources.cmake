# One line per file of graph/ops/, alphabetical; read by graph/CMakeLists.txt.
set(TS_OP_SOURCES
  ops/constant.cpp
  ops/input.cpp
  ops/op_list.cpp
)
