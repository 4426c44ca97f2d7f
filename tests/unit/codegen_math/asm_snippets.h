/// Assembly as LLVM 19 printed it, for asm_guard_test: register tiles of one generator for several targets, good and
/// bad. Directives without a meaning there are left out, and so is what lies before and behind the loops.
#pragma once

namespace tensmith::snippets {

/// 4 x 16 floats for znver3: nothing but loads, broadcasts and arithmetic.
inline constexpr char kGood[] = R"(	.type	good,@function
good:                                   # @good
# %bb.0:                                # %entry
	leaq	(%r9,%r9,2), %rax
	xorl	%r8d, %r8d
	xorl	%r10d, %r10d
.LBB0_1:                                # %loop
                                        # =>This Inner Loop Header: Depth=1
	vmovaps	(%rsi,%r8,4), %ymm8
	vbroadcastss	4(%rdi,%r8), %ymm11
	vmovaps	32(%rsi,%r8,4), %ymm9
	vbroadcastss	(%rdi,%r8), %ymm10
	vbroadcastss	8(%rdi,%r8), %ymm12
	incq	%r10
	vfmadd231ps	%ymm8, %ymm11, %ymm2
	vfmadd231ps	%ymm11, %ymm9, %ymm3
	vbroadcastss	12(%rdi,%r8), %ymm11
	vfmadd231ps	%ymm8, %ymm10, %ymm0
	vfmadd231ps	%ymm10, %ymm9, %ymm1
	vfmadd231ps	%ymm8, %ymm12, %ymm4
	vfmadd231ps	%ymm12, %ymm9, %ymm5
	addq	$16, %r8
	vfmadd231ps	%ymm8, %ymm11, %ymm6
	vfmadd231ps	%ymm9, %ymm11, %ymm7
	cmpq	%rcx, %r10
	jb	.LBB0_1
# %bb.2:                                # %exit
	vzeroupper
	retq
.Lfunc_end0:
)";

/// 7 x 16 floats for znver3: two registers more than there are.
inline constexpr char kSpilled[] = R"(	.type	spilled,@function
spilled:                                # @spilled
# %bb.0:                                # %entry
	leaq	(%r9,%r9,2), %rax
	leaq	(%r9,%r9,4), %r10
	movq	%r9, %r8
	shlq	$4, %r8
	xorl	%r11d, %r11d
.LBB0_1:                                # %loop
                                        # =>This Inner Loop Header: Depth=1
	vmovups	%ymm13, -40(%rsp)               # 32-byte Spill
	vmovaps	%ymm12, %ymm13
	vmovaps	%ymm11, %ymm12
	vmovaps	%ymm10, %ymm11
	vmovaps	%ymm9, %ymm10
	vmovaps	%ymm8, %ymm9
	vmovaps	%ymm7, %ymm8
	vmovaps	%ymm6, %ymm7
	vmovaps	%ymm5, %ymm6
	vmovaps	%ymm4, %ymm5
	vmovaps	%ymm3, %ymm4
	vmovaps	%ymm2, %ymm3
	vmovaps	%ymm1, %ymm2
	vmovaps	(%rsi), %ymm15
	vbroadcastss	(%rdi), %ymm0
	vmovups	-72(%rsp), %ymm1                # 32-byte Reload
	vmovaps	32(%rsi), %ymm14
	incq	%r11
	addq	$64, %rsi
	vfmadd231ps	%ymm15, %ymm0, %ymm1
	vmovups	%ymm1, -72(%rsp)                # 32-byte Spill
	vmovaps	%ymm2, %ymm1
	vfmadd231ps	%ymm0, %ymm14, %ymm1
	vbroadcastss	4(%rdi), %ymm0
	vmovaps	%ymm3, %ymm2
	vmovaps	%ymm4, %ymm3
	vmovaps	%ymm5, %ymm4
	vmovaps	%ymm6, %ymm5
	vmovaps	%ymm7, %ymm6
	vmovaps	%ymm8, %ymm7
	vmovaps	%ymm9, %ymm8
	vmovaps	%ymm10, %ymm9
	vmovaps	%ymm11, %ymm10
	vmovaps	%ymm12, %ymm11
	vmovaps	%ymm13, %ymm12
	vmovups	-40(%rsp), %ymm13               # 32-byte Reload
	vfmadd231ps	%ymm15, %ymm0, %ymm2
	vfmadd231ps	%ymm0, %ymm14, %ymm3
	vbroadcastss	8(%rdi), %ymm0
	vfmadd231ps	%ymm15, %ymm0, %ymm4
	vfmadd231ps	%ymm0, %ymm14, %ymm5
	vbroadcastss	12(%rdi), %ymm0
	vfmadd231ps	%ymm15, %ymm0, %ymm6
	vfmadd231ps	%ymm0, %ymm14, %ymm7
	vbroadcastss	16(%rdi), %ymm0
	vfmadd231ps	%ymm15, %ymm0, %ymm8
	vfmadd231ps	%ymm0, %ymm14, %ymm9
	vbroadcastss	20(%rdi), %ymm0
	vfmadd231ps	%ymm15, %ymm0, %ymm10
	vfmadd231ps	%ymm0, %ymm14, %ymm11
	vbroadcastss	24(%rdi), %ymm0
	addq	$28, %rdi
	vfmadd231ps	%ymm15, %ymm0, %ymm12
	vfmadd231ps	%ymm14, %ymm0, %ymm13
	cmpq	%rcx, %r11
	jb	.LBB0_1
# %bb.2:                                # %exit
	vzeroupper
	retq
.Lfunc_end0:
)";

/// 4 x 32 floats for sapphirerapids with "min-legal-vector-width"="0": 512-bit vectors in halves.
inline constexpr char kHalves[] = R"(	.type	halves,@function
halves:                                 # @halves
# %bb.0:                                # %entry
	leaq	(%r9,%r9,2), %rax
	xorl	%r8d, %r8d
	xorl	%r10d, %r10d
.LBB0_1:                                # %loop
                                        # =>This Inner Loop Header: Depth=1
	vmovaps	(%rsi,%r8,8), %ymm16
	vmovaps	32(%rsi,%r8,8), %ymm17
	vmovaps	64(%rsi,%r8,8), %ymm18
	vmovaps	96(%rsi,%r8,8), %ymm19
	vbroadcastss	(%rdi,%r8), %ymm20
	vfmadd231ps	%ymm17, %ymm20, %ymm5
	vfmadd231ps	%ymm16, %ymm20, %ymm4
	vfmadd231ps	%ymm19, %ymm20, %ymm7
	vfmadd231ps	%ymm20, %ymm18, %ymm6
	vbroadcastss	4(%rdi,%r8), %ymm20
	vfmadd231ps	%ymm17, %ymm20, %ymm8
	vfmadd231ps	%ymm16, %ymm20, %ymm0
	vfmadd231ps	%ymm19, %ymm20, %ymm9
	vfmadd231ps	%ymm20, %ymm18, %ymm1
	vbroadcastss	8(%rdi,%r8), %ymm20
	vfmadd231ps	%ymm17, %ymm20, %ymm10
	vfmadd231ps	%ymm16, %ymm20, %ymm2
	vfmadd231ps	%ymm19, %ymm20, %ymm11
	vfmadd231ps	%ymm20, %ymm18, %ymm3
	vbroadcastss	12(%rdi,%r8), %ymm20
	vfmadd231ps	%ymm17, %ymm20, %ymm13
	vfmadd231ps	%ymm16, %ymm20, %ymm12
	vfmadd231ps	%ymm19, %ymm20, %ymm15
	vfmadd231ps	%ymm18, %ymm20, %ymm14
	incq	%r10
	addq	$16, %r8
	cmpq	%rcx, %r10
	jb	.LBB0_1
# %bb.2:                                # %exit
	vzeroupper
	retq
.Lfunc_end0:
)";

/// 1 x 4 floats without a target CPU: each lane a call of fmaf.
inline constexpr char kCalls[] = R"(	.type	calls,@function
calls:                                  # @calls
# %bb.0:                                # %entry
	pushq	%r15
	pushq	%r14
	pushq	%r13
	pushq	%r12
	pushq	%rbx
	subq	$80, %rsp
	movq	%rcx, %r14
	movq	%rdx, %rbx
	movq	%rsi, %r15
	movq	%rdi, %r12
	xorl	%r13d, %r13d
.LBB0_1:                                # %loop
                                        # =>This Inner Loop Header: Depth=1
	movaps	(%r15), %xmm3
	movaps	%xmm3, 32(%rsp)                 # 16-byte Spill
	movss	(%r12,%r13,4), %xmm0
	movss	%xmm0, 12(%rsp)                 # 4-byte Spill
	movaps	%xmm1, %xmm2
	movaps	%xmm1, 48(%rsp)                 # 16-byte Spill
	shufps	$255, %xmm1, %xmm2
	movaps	%xmm3, %xmm1
	shufps	$255, %xmm3, %xmm1
	callq	fmaf@PLT
	movaps	%xmm0, 16(%rsp)                 # 16-byte Spill
	movaps	48(%rsp), %xmm2                 # 16-byte Reload
	movhlps	%xmm2, %xmm2
	movaps	32(%rsp), %xmm1                 # 16-byte Reload
	movhlps	%xmm1, %xmm1
	movss	12(%rsp), %xmm0                 # 4-byte Reload

	callq	fmaf@PLT
	unpcklps	16(%rsp), %xmm0                 # 16-byte Folded Reload

	movaps	%xmm0, 16(%rsp)                 # 16-byte Spill
	movss	12(%rsp), %xmm0                 # 4-byte Reload

	movaps	32(%rsp), %xmm1                 # 16-byte Reload
	movaps	48(%rsp), %xmm2                 # 16-byte Reload
	callq	fmaf@PLT
	movaps	%xmm0, 64(%rsp)                 # 16-byte Spill
	movaps	48(%rsp), %xmm2                 # 16-byte Reload
	shufps	$85, %xmm2, %xmm2
	movaps	32(%rsp), %xmm1                 # 16-byte Reload
	shufps	$85, %xmm1, %xmm1
	movss	12(%rsp), %xmm0                 # 4-byte Reload

	callq	fmaf@PLT
	movaps	64(%rsp), %xmm1                 # 16-byte Reload
	unpcklps	%xmm0, %xmm1
	unpcklpd	16(%rsp), %xmm1                 # 16-byte Folded Reload

	addq	$16, %r15
	incq	%r13
	cmpq	%r14, %r13
	jb	.LBB0_1
# %bb.2:                                # %exit
	addq	$80, %rsp
	popq	%rbx
	popq	%r12
	popq	%r13
	popq	%r14
	popq	%r15
	retq
.Lfunc_end0:
)";

/// A loop that Clang vectorised by gathers.
inline constexpr char kGathered[] = R"(	.type	gathered,@function
gathered:                               # @gathered
# %bb.0:
	testq	%rcx, %rcx
	jle	.LBB0_5
# %bb.1:
	shlq	$4, %rcx
	cmpq	$2, %rcx
	movl	$1, %eax
	cmovgeq	%rcx, %rax
	cmpq	$7, %rcx
	jg	.LBB0_6
# %bb.2:
	xorl	%r8d, %r8d
	jmp	.LBB0_3
.LBB0_6:
	movabsq	$9223372036854775792, %r8       # imm = 0x7FFFFFFFFFFFFFF0
	andq	%rax, %r8
	cmpq	$16, %rcx
	jge	.LBB0_7
# %bb.10:
	xorl	%ecx, %ecx
	vbroadcastss	.LCPI0_0(%rip), %ymm0
.LBB0_11:                               # =>This Inner Loop Header: Depth=1
	vmovups	(%rsi,%rcx,4), %ymm1
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm2, %xmm2, %xmm2
	vgatherdps	(%rdi,%ymm1,4), %ymm2 {%k1}
	vfmadd213ps	(%rdx,%rcx,4), %ymm0, %ymm2
	vmovups	%ymm2, (%rdx,%rcx,4)
	addq	$8, %rcx
	cmpq	%rcx, %r8
	jne	.LBB0_11
	jmp	.LBB0_9
.LBB0_7:
	xorl	%ecx, %ecx
	vbroadcastss	.LCPI0_0(%rip), %zmm0
.LBB0_8:                                # =>This Inner Loop Header: Depth=1
	vmovups	(%rsi,%rcx,4), %zmm1
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm2, %xmm2, %xmm2
	vgatherdps	(%rdi,%zmm1,4), %zmm2 {%k1}
	vfmadd213ps	(%rdx,%rcx,4), %zmm0, %zmm2
	vmovups	%zmm2, (%rdx,%rcx,4)
	addq	$16, %rcx
	cmpq	%rcx, %r8
	jne	.LBB0_8
.LBB0_9:
	cmpq	%r8, %rax
	je	.LBB0_5
.LBB0_3:
	vmovss	.LCPI0_0(%rip), %xmm0
.LBB0_4:                                # =>This Inner Loop Header: Depth=1
	movslq	(%rsi,%r8,4), %rcx
	vmovss	(%rdi,%rcx,4), %xmm1
	vfmadd213ss	(%rdx,%r8,4), %xmm0, %xmm1
	vmovss	%xmm1, (%rdx,%r8,4)
	incq	%r8
	cmpq	%r8, %rax
	jne	.LBB0_4
.LBB0_5:
	vzeroupper
	retq
.Lfunc_end0:
)";

/// 4 x 8 floats for AArch64.
inline constexpr char kNeon[] = R"(	.type	neon,@function
neon:                                   // @neon
// %bb.0:                               // %entry
	mov	w8, #12                         // =0xc
	add	x9, x2, x5, lsl #2
	madd	x10, x5, x8, x2
	add	x8, x2, x5, lsl #3
	mov	x10, xzr
.LBB0_1:                                // %loop
                                        // =>This Inner Loop Header: Depth=1
	ldp	q16, q17, [x1], #32
	mov	x11, x0
	add	x10, x10, #1
	ld1r	{ v18.4s }, [x11], #4
	ldr	s19, [x11]
	cmp	x10, x3
	fmla	v0.4s, v16.4s, v19.s[0]
	fmla	v1.4s, v17.4s, v19.s[0]
	ldp	s20, s19, [x0, #8]
	fmla	v6.4s, v16.4s, v18.4s
	fmla	v7.4s, v17.4s, v18.4s
	add	x0, x0, #16
	fmla	v2.4s, v16.4s, v20.s[0]
	fmla	v3.4s, v17.4s, v20.s[0]
	fmla	v4.4s, v16.4s, v19.s[0]
	fmla	v5.4s, v17.4s, v19.s[0]
	b.lo	.LBB0_1
// %bb.2:                               // %exit
	mov	w10, #12                        // =0xc
	ret
.Lfunc_end0:
)";

/// 7 x 16 floats for AArch64: one register more than there are.
inline constexpr char kNeonSpilled[] = R"(	.type	neon_spilled,@function
neon_spilled:                           // @neon_spilled
// %bb.0:                               // %entry
	sub	sp, sp, #96
	mov	w8, #12                         // =0xc
	mov	w10, #20                        // =0x14
	add	x9, x2, x5, lsl #2
	madd	x8, x5, x8, x2
	stp	d11, d10, [sp, #64]             // 16-byte Folded Spill
	stp	d9, d8, [sp, #80]               // 16-byte Folded Spill
	madd	x11, x5, x10, x2
	mov	w10, #24                        // =0x18
	stp	d15, d14, [sp, #32]             // 16-byte Folded Spill
	stp	d13, d12, [sp, #48]             // 16-byte Folded Spill
	madd	x12, x5, x10, x2
	add	x10, x2, x5, lsl #3
	add	x8, x2, x5, lsl #4
	mov	x11, xzr
	stp	q0, q1, [sp]                    // 32-byte Folded Spill
.LBB0_1:                                // %loop
                                        // =>This Inner Loop Header: Depth=1
	mov	x12, x0
	ldp	q13, q12, [x1]
	ldp	q15, q14, [x1, #32]
	add	x11, x11, #1
	ld1r	{ v0.4s }, [x12], #4
	ldr	s1, [x12]
	cmp	x11, x3
	add	x1, x1, #64
	fmla	v30.4s, v13.4s, v1.s[0]
	fmla	v31.4s, v12.4s, v1.s[0]
	fmla	v26.4s, v13.4s, v0.4s
	fmla	v27.4s, v12.4s, v0.4s
	fmla	v28.4s, v15.4s, v0.4s
	fmla	v29.4s, v14.4s, v0.4s
	fmla	v22.4s, v15.4s, v1.s[0]
	fmla	v23.4s, v14.4s, v1.s[0]
	ldp	s0, s1, [x0, #8]
	fmla	v8.4s, v13.4s, v0.s[0]
	fmla	v9.4s, v12.4s, v0.s[0]
	fmla	v10.4s, v15.4s, v0.s[0]
	fmla	v11.4s, v14.4s, v0.s[0]
	fmla	v18.4s, v13.4s, v1.s[0]
	fmla	v19.4s, v12.4s, v1.s[0]
	fmla	v16.4s, v15.4s, v1.s[0]
	fmla	v17.4s, v14.4s, v1.s[0]
	ldp	s0, s1, [x0, #16]
	fmla	v24.4s, v13.4s, v0.s[0]
	fmla	v25.4s, v12.4s, v0.s[0]
	fmla	v20.4s, v15.4s, v0.s[0]
	fmla	v21.4s, v14.4s, v0.s[0]
	ldr	q0, [sp, #16]                   // 16-byte Folded Reload
	fmla	v2.4s, v15.4s, v1.s[0]
	fmla	v3.4s, v14.4s, v1.s[0]
	fmla	v0.4s, v13.4s, v1.s[0]
	str	q0, [sp, #16]                   // 16-byte Folded Spill
	ldr	q0, [sp]                        // 16-byte Folded Reload
	fmla	v0.4s, v12.4s, v1.s[0]
	str	q0, [sp]                        // 16-byte Folded Spill
	ldr	s0, [x0, #24]
	add	x0, x0, #28
	fmla	v4.4s, v13.4s, v0.s[0]
	fmla	v5.4s, v12.4s, v0.s[0]
	fmla	v6.4s, v15.4s, v0.s[0]
	fmla	v7.4s, v14.4s, v0.s[0]
	b.lo	.LBB0_1
// %bb.2:                               // %exit
	mov	w11, #12                        // =0xc
	mov	w10, #20                        // =0x14
	mov	w10, #24                        // =0x18
	add	sp, sp, #96
	ret
.Lfunc_end0:
)";

}  // namespace tensmith::snippets
