// A 32-bit system call from a 64-bit program: the numbers mean other calls there, so that a filter by number is walked around.
#include "attack.h"

int main(void) {
#ifdef __x86_64__
    long result;
    // 20 is `getpid` for 32-bit programs and `writev` for 64-bit ones.
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20), "b"(0), "c"(0), "d"(0) : "memory");
    printf(result > 0 ? "reached: pid %ld\n" : "error %ld\n", result);
#else
    puts("SIGSYS");
#endif
    return 0;
}
