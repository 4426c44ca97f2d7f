/* Text in a buffer of fixed size: messages of the C parts, which must not allocate. What does not fit is cut off. */
#ifndef TENSMITH_RUNTIME_EXPORT_TEXT_H
#define TENSMITH_RUNTIME_EXPORT_TEXT_H

#include "runtime/base/c_core.h"

typedef struct tensmith_text {
  char* data; /* always ends with a zero byte if bytes > 0 */
  int64_t bytes;
  int64_t used;
} tensmith_text;

TS_C_API void tensmith_text_clear(tensmith_text* text);
TS_C_API void tensmith_text_add(tensmith_text* text, const char* words);
TS_C_API void tensmith_text_add_bytes(tensmith_text* text, const char* words, int64_t length);
TS_C_API void tensmith_text_add_int(tensmith_text* text, int64_t value);
/* "[1,3,224]" */
TS_C_API void tensmith_text_add_shape(tensmith_text* text, const int64_t* shape, int32_t ndim);
/* "f32" */
TS_C_API void tensmith_text_add_dtype(tensmith_text* text, uint8_t code, uint8_t bits, uint16_t lanes);

#endif
