# cmake -DINPUT=file -DOUTPUT=file.c -DNAME=name -P embed.cmake: writes a file's bytes as a C array `tensmith_blob_NAME` with its size.
# An INPUT that is empty gives an array of one zero byte and size 0.
set(hex "")
if(INPUT)
  file(READ "${INPUT}" hex HEX)
endif()
string(LENGTH "${hex}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE "${OUTPUT}" "extern const unsigned char tensmith_blob_${NAME}[];
extern const unsigned long tensmith_blob_${NAME}_size;
const unsigned char tensmith_blob_${NAME}[] __attribute__((aligned(64))) = {
${bytes}0};
const unsigned long tensmith_blob_${NAME}_size = ${size};
")
