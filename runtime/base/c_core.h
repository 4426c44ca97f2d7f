/* Linkage of the parts in C: external functions of the tool; static ones inside the single support object of an
 * exported library, which defines TS_C_API before it includes all sources (runtime/export/support.c). */
#ifndef TENSMITH_RUNTIME_BASE_C_CORE_H
#define TENSMITH_RUNTIME_BASE_C_CORE_H

#include <stdint.h>

#ifndef TS_C_API
#ifdef __cplusplus
#define TS_C_API extern "C"
#else
#define TS_C_API extern
#endif
#endif

#endif
