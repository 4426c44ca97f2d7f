#include "runtime/export/text.h"

#include <string.h>

TS_C_API void tensmith_text_clear(tensmith_text* text) {
  text->used = 0;
  if (text->bytes > 0) text->data[0] = 0;
}

TS_C_API void tensmith_text_add_bytes(tensmith_text* text, const char* words, int64_t length) {
  if (text->bytes <= 0) return;
  if (length > text->bytes - 1 - text->used) length = text->bytes - 1 - text->used;
  memcpy(text->data + text->used, words, (size_t)length);
  text->used += length;
  text->data[text->used] = 0;
}

TS_C_API void tensmith_text_add(tensmith_text* text, const char* words) {
  tensmith_text_add_bytes(text, words, (int64_t)strlen(words));
}

TS_C_API void tensmith_text_add_int(tensmith_text* text, int64_t value) {
  char digits[24];
  int n = sizeof digits;
  uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  do {
    digits[--n] = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest);
  if (value < 0) digits[--n] = '-';
  tensmith_text_add_bytes(text, digits + n, (int64_t)sizeof digits - n);
}

TS_C_API void tensmith_text_add_shape(tensmith_text* text, const int64_t* shape, int32_t ndim) {
  int32_t i;
  tensmith_text_add(text, "[");
  for (i = 0; i < ndim; ++i) {
    if (i) tensmith_text_add(text, ",");
    tensmith_text_add_int(text, shape[i]);
  }
  tensmith_text_add(text, "]");
}

TS_C_API void tensmith_text_add_dtype(tensmith_text* text, uint8_t code, uint8_t bits, uint16_t lanes) {
  static const char* const names[] = {"i", "u", "f", "handle", "bf", "complex", "bool"};
  tensmith_text_add(text, code < 7 ? names[code] : "code ");
  if (code >= 7) {
    tensmith_text_add_int(text, code);
    tensmith_text_add(text, " bits ");
  }
  if (code != 3 && code != 6) tensmith_text_add_int(text, bits);
  if (lanes != 1) {
    tensmith_text_add(text, "x");
    tensmith_text_add_int(text, lanes);
  }
}
