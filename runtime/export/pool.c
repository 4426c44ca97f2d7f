#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "runtime/export/pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/cpu_count.h"

/* State in the low two bits of a worker's word, above them a count that makes every offer a new value. Transitions:
 *   idle --caller--> offered --worker--> claimed --worker--> idle
 *                    offered --caller--> idle     (others have done all of that part)   */
enum { TS_IDLE = 0, TS_OFFERED = 1, TS_CLAIMED = 2, TS_STATE = 3 };

/* A loop is cut into pieces, each thread's part into up to eight. A thread takes pieces from the front of its own part,
 * always half of what is left, so an undisturbed part needs four calls of the body; who has nothing left takes half of
 * what is left at the back of another's part. Without this a core that is slower or shared with other programs would
 * delay every loop. */
enum { TS_PIECES = 8, TS_NEIGHBOURS = 8 };

typedef struct ts_loop {
  tensmith_loop_body body; /* null: end the thread */
  void* closure;
  int64_t extent;
  int32_t pieces;
} ts_loop;

/* One cache line: a worker gets its part with one transfer. */
typedef struct ts_cell {
  uint64_t range;    /* pieces that nobody has taken: the first in the low half, the end in the high half */
  uint32_t word;     /* state and count; futex of both sides */
  uint8_t parked;    /* 1: the worker sleeps or is about to */
  uint8_t awaited;   /* 1: the caller sleeps until this part is done */
  uint16_t thread;
  int32_t failed_piece; /* lowest piece that failed under this thread, and its code */
  int32_t error;
  ts_loop loop;
} __attribute__((aligned(64))) ts_cell;

struct tensmith_pool {
  uint32_t busy; /* 1: a loop is running */
  int32_t threads;
  int64_t spin_ns;
  int64_t yield_ns; /* spinning gives way to other threads this often */
  int64_t bytes;
  pid_t owner; /* workers exist in this process only */
  pthread_t* handles;
  ts_cell cells[] __attribute__((aligned(64))); /* cells[t] is thread t; cells[0] is the caller */
};

static long ts_futex(uint32_t* word, int operation, uint32_t value) {
  return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, (void*)0, (void*)0, 0);
}

static void ts_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory"); /* "yield" returns at once on most cores; isb takes tens of cycles */
#else
  __asm__ volatile("" ::: "memory");
#endif
}

static int64_t ts_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Spins until (word & mask) differs from `value` or the time is over; returns the word. The first look at the clock
 * comes after two or three microseconds, so short waits never pay for it. */
static uint32_t ts_spin(const tensmith_pool* pool, const uint32_t* word, uint32_t mask, uint32_t value) {
  int64_t start = 0, next_yield = 0;
  uint32_t seen, round = 0;
  for (;;) {
    seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    if ((seen & mask) != value) return seen;
    ts_pause();
    if (++round % 64 == 0) {
      int64_t now = ts_now_ns();
      if (start == 0) {
        start = now;
        next_yield = now + pool->yield_ns;
      }
      if (now - start >= pool->spin_ns) return seen;
      if (now >= next_yield) {
        sched_yield();
        next_yield = ts_now_ns() + pool->yield_ns;
      }
    }
  }
}

/* n * part / parts without overflow. */
static int64_t ts_part_begin(int64_t n, int32_t part, int32_t parts) {
  return n / parts * part + n % parts * part / parts;
}

static uint64_t ts_range(uint32_t begin, uint32_t end) { return (uint64_t)end << 32 | begin; }

/* Takes half of what is left, from the front (own part) or the back (another's). 0: nothing left. */
static int ts_take(ts_cell* cell, int from_back, uint32_t* begin, uint32_t* end) {
  uint64_t seen = __atomic_load_n(&cell->range, __ATOMIC_RELAXED), next;
  do {
    uint32_t first = (uint32_t)seen, last = (uint32_t)(seen >> 32), half;
    if (first >= last) return 0;
    half = (last - first + 1) / 2;
    *begin = from_back ? last - half : first;
    *end = from_back ? last : first + half;
    next = from_back ? ts_range(first, last - half) : ts_range(first + half, last);
  } while (!__atomic_compare_exchange_n(&cell->range, &seen, next, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  return 1;
}

/* Runs pieces as thread `self`. */
static void ts_run(const ts_loop* loop, ts_cell* self, uint32_t begin, uint32_t end) {
  int32_t error = loop->body(loop->closure, ts_part_begin(loop->extent, (int32_t)begin, loop->pieces),
                             ts_part_begin(loop->extent, (int32_t)end, loop->pieces), self->thread);
  if (error && (int32_t)begin < self->failed_piece) {
    self->failed_piece = (int32_t)begin;
    self->error = error;
  }
}

static void ts_run_own(const ts_loop* loop, ts_cell* self) {
  uint32_t begin, end;
  while (ts_take(self, 0, &begin, &end)) ts_run(loop, self, begin, end);
}

/* Takes from the `count` threads after `self`, round about. A cell outside this loop is empty, so nothing foreign is
 * taken. */
static void ts_run_others(tensmith_pool* pool, const ts_loop* loop, ts_cell* self, int32_t count) {
  int32_t i, t = self->thread;
  uint32_t begin, end;
  for (i = 0; i < count; ++i) {
    if (++t == pool->threads) t = 0;
    while (ts_take(&pool->cells[t], 1, &begin, &end)) ts_run(loop, self, begin, end);
  }
}

/* Worker: the word once it is offered. */
static uint32_t ts_wait_for_offer(const tensmith_pool* pool, ts_cell* cell) {
  for (;;) {
    uint32_t seen = ts_spin(pool, &cell->word, TS_STATE, TS_IDLE);
    if ((seen & TS_STATE) == TS_OFFERED) return seen;
    /* First the flag, then the kernel's look at the word; the caller writes the word, then looks at the flag. One of
     * the two sees the other (both operations are sequentially consistent). */
    __atomic_store_n(&cell->parked, 1, __ATOMIC_SEQ_CST);
    ts_futex(&cell->word, FUTEX_WAIT, seen);
    __atomic_store_n(&cell->parked, 0, __ATOMIC_SEQ_CST);
  }
}

static tensmith_pool* ts_pool_of(ts_cell* cell) {
  return (tensmith_pool*)((char*)(cell - cell->thread) - offsetof(tensmith_pool, cells));
}

static void* ts_worker_main(void* argument) {
  ts_cell* cell = (ts_cell*)argument;
  tensmith_pool* pool = ts_pool_of(cell);
  for (;;) {
    uint32_t seen = ts_wait_for_offer(pool, cell);
    uint32_t claimed = (seen & ~(uint32_t)TS_STATE) | TS_CLAIMED;
    ts_loop loop;
    /* On failure the caller has taken the offer back. */
    if (!__atomic_compare_exchange_n(&cell->word, &seen, claimed, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) continue;
    loop = cell->loop;
    if (loop.body) {
      ts_run_own(&loop, cell);
      ts_run_others(pool, &loop, cell, pool->threads - 1 < TS_NEIGHBOURS ? pool->threads - 1 : TS_NEIGHBOURS);
    }
    __atomic_store_n(&cell->word, claimed & ~(uint32_t)TS_STATE, __ATOMIC_SEQ_CST);
    if (!loop.body) return 0;
    if (__atomic_load_n(&cell->awaited, __ATOMIC_SEQ_CST)) ts_futex(&cell->word, FUTEX_WAKE, 1);
  }
}

/* Caller: gives a part to a worker. */
static void ts_offer(ts_cell* cell, const ts_loop* loop, uint64_t range) {
  uint32_t count =
      (__atomic_load_n(&cell->word, __ATOMIC_RELAXED) & ~(uint32_t)TS_STATE) + 4; /* idle: only the caller writes */
  cell->loop = *loop;
  cell->failed_piece = INT32_MAX;
  cell->error = 0;
  /* Another worker that is already at this loop may take from the range before the offer is seen. */
  __atomic_store_n(&cell->range, range, __ATOMIC_RELEASE);
  __atomic_store_n(&cell->word, count | TS_OFFERED, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&cell->parked, __ATOMIC_SEQ_CST)) ts_futex(&cell->word, FUTEX_WAKE, 1);
}

/* Caller: returns when the worker has nothing to do with this loop any more. Its range is empty. */
static void ts_finish(const tensmith_pool* pool, ts_cell* cell) {
  uint32_t seen = __atomic_load_n(&cell->word, __ATOMIC_ACQUIRE);
  if ((seen & TS_STATE) == TS_OFFERED && __atomic_compare_exchange_n(&cell->word, &seen, seen & ~(uint32_t)TS_STATE, 0,
                                                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return;
  while ((seen & TS_STATE) != TS_IDLE) {
    seen = ts_spin(pool, &cell->word, TS_STATE, TS_CLAIMED);
    if ((seen & TS_STATE) == TS_IDLE) return;
    __atomic_store_n(&cell->awaited, 1, __ATOMIC_SEQ_CST);
    ts_futex(&cell->word, FUTEX_WAIT, seen);
    __atomic_store_n(&cell->awaited, 0, __ATOMIC_SEQ_CST);
  }
}

TS_C_API int32_t tensmith_pool_parallel_for(void* pool_pointer, tensmith_loop_body body, void* closure,
                                            int64_t extent) {
  tensmith_pool* pool = (tensmith_pool*)pool_pointer;
  int32_t parts = pool->threads < extent ? pool->threads : (int32_t)extent;
  int32_t t, error = 0, failed = INT32_MAX;
  ts_cell* self = &pool->cells[0];
  ts_loop loop;
  if (extent <= 0) return 0;
  if (parts == 1 || __atomic_exchange_n(&pool->busy, 1, __ATOMIC_ACQUIRE)) return body(closure, 0, extent, 0);
  loop.body = body;
  loop.closure = closure;
  loop.extent = extent;
  loop.pieces = parts * TS_PIECES < extent ? parts * TS_PIECES : (int32_t)extent;
  self->failed_piece = INT32_MAX;
  self->error = 0;
  __atomic_store_n(&self->range, ts_range(0, (uint32_t)ts_part_begin(loop.pieces, 1, parts)), __ATOMIC_RELEASE);
  for (t = 1; t < parts; ++t)
    ts_offer(
        &pool->cells[t], &loop,
        ts_range((uint32_t)ts_part_begin(loop.pieces, t, parts), (uint32_t)ts_part_begin(loop.pieces, t + 1, parts)));
  ts_run_own(&loop, self);
  ts_run_others(pool, &loop, self, parts - 1);
  for (t = 1; t < parts; ++t) ts_finish(pool, &pool->cells[t]);
  for (t = 0; t < parts; ++t)
    if (pool->cells[t].error && pool->cells[t].failed_piece < failed) {
      failed = pool->cells[t].failed_piece;
      error = pool->cells[t].error;
    }
  __atomic_store_n(&pool->busy, 0, __ATOMIC_RELEASE);
  return error;
}

TS_C_API int32_t tensmith_pool_threads(const tensmith_pool* pool) { return pool->threads; }

TS_C_API tensmith_pool* tensmith_pool_create(int32_t threads, int64_t spin_us) {
  tensmith_pool* pool;
  pthread_attr_t attributes;
  sigset_t all, old;
  size_t bytes, handles_at;
  int32_t t, started = 1;
  if (threads <= 0) threads = tensmith_usable_cores();
  if (threads > TENSMITH_MAX_THREADS) threads = TENSMITH_MAX_THREADS;
  handles_at = offsetof(tensmith_pool, cells) + (size_t)threads * sizeof(ts_cell);
  bytes = handles_at + (size_t)threads * sizeof(pthread_t);
  pool = (tensmith_pool*)mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pool == (tensmith_pool*)MAP_FAILED) return 0;
  pool->bytes = (int64_t)bytes;
  pool->handles = (pthread_t*)((char*)pool + handles_at);
  pool->owner = (pid_t)syscall(SYS_getpid);
  pool->spin_ns = (spin_us < 0 ? 0 : spin_us < 1000000 ? spin_us : 1000000) * 1000;
  pool->yield_ns = 20000;
  if (threads > tensmith_affinity_cpus()) {
    /* Somebody who has work waits for the CPU that a spinning thread holds: give way at once, sleep early. */
    pool->yield_ns = 0;
    if (pool->spin_ns > 50000) pool->spin_ns = 50000;
  }
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, (size_t)2 << 20);
  memset(&all, 0xff, sizeof all); /* signals are the host's business: its threads handle them */
  pthread_sigmask(SIG_SETMASK, &all, &old);
  for (t = 1; t < threads; ++t) {
    pool->cells[t].thread = (uint16_t)t;
    if (pthread_create(&pool->handles[t], &attributes, ts_worker_main, &pool->cells[t]) != 0) break;
    ++started;
  }
  pthread_sigmask(SIG_SETMASK, &old, 0);
  pthread_attr_destroy(&attributes);
  pool->threads = started; /* workers read it only when a loop is offered to them */
  return pool;
}

TS_C_API void tensmith_pool_destroy(tensmith_pool* pool) {
  int32_t t;
  if (!pool) return;
  if (pool->owner == (pid_t)syscall(SYS_getpid)) { /* after fork() there are no workers to end */
    ts_loop end = {0, 0, 0, 0};
    for (t = 1; t < pool->threads; ++t) ts_offer(&pool->cells[t], &end, 0);
    for (t = 1; t < pool->threads; ++t) pthread_join(pool->handles[t], 0);
  }
  munmap(pool, (size_t)pool->bytes);
}
