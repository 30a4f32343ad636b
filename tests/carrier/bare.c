/*
 * bare.c: a program without a C library and without call-frame information. It writes a line and waits, two frames
 * below nothing: x86-64 only; elsewhere it ends at once.
 */
#ifdef __x86_64__
__asm__(".text\n"
        ".globl _start\n"
        ".type _start, @function\n"
        "_start:\n"
        "xor %ebp, %ebp\n"
        "and $-16, %rsp\n"
        "call wait_for_nothing\n"
        "hlt\n"
        ".type wait_for_nothing, @function\n"
        "wait_for_nothing:\n"
        "mov $157, %eax\n" /* SYS_prctl */
        "mov $1, %edi\n"   /* PR_SET_PDEATHSIG */
        "mov $9, %esi\n"
        "syscall\n"
        "mov $1, %eax\n" /* SYS_write */
        "mov $1, %edi\n"
        "lea line(%rip), %rsi\n"
        "mov $4, %edx\n"
        "syscall\n"
        "mov $34, %eax\n" /* SYS_pause */
        "syscall\n"
        "ret\n"
        "line: .ascii \"end\\n\"\n"
        ".section .note.GNU-stack,\"\",@progbits\n"
        ".text\n");
#else
void _start(void);

void _start(void)
{
    __builtin_trap();
}
#endif
