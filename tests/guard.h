// tests/guard.h: the device guard:0, whose memory the host cannot touch, so that code above the backends' table cannot
// cheat by reading it. Its addresses are those of ordinary blocks with a bit flipped that no mapped address has: using
// one faults.
// A kernel of its table turns the addresses of just the tensors it is given back and runs the CPU's; that every view
// lies inside its buffer is checked on the way. Fresh memory is all ones (NaN, and indices out of range), not zeros.
// What is uploaded beside its work arrives when it is asked for, and not before. test.h includes this where TEST_GUARD
// is defined, and makes the device the main thread's own.
#ifndef GUARD_H
#define GUARD_H

#define GUARD_BIT ((uintptr_t)1 << (sizeof(uintptr_t) > 4 ? 55 : 31))

static int64_t guard_blocks, guard_kernels;  // allocated now; kernels run so far
static int64_t guard_fail_at;                // > 0: that allocation from now on fails, once
static int64_t guard_works = -1;             // >= 0: so many kernels and copies more, and then none any longer
static const char *guard_trouble;            // what a kernel was given that it should not have been

static void *guard_flip(const void *p) { return (void *)((uintptr_t)p ^ GUARD_BIT); }

static void *guard_allocate(eg_backend *b, int64_t bytes) {
    (void)b;
    if (guard_fail_at > 0 && --guard_fail_at == 0) return NULL;
    if (bytes < 0 || (uint64_t)bytes > SIZE_MAX - 64) return NULL;
    char *base = (char *)malloc((size_t)bytes + 64);
    if (!base) return NULL;
    size_t gap = 64 - ((uintptr_t)base & 63);           // 1 to 64; the byte before the block remembers it
    base[gap - 1] = (char)gap;
    memset(base + gap, 0xff, (size_t)bytes);
    __atomic_fetch_add(&guard_blocks, 1, __ATOMIC_RELAXED);
    return guard_flip(base + gap);
}
// Uploads under way, the newest first.
typedef struct guard_upload { struct guard_upload *older; char *to; int64_t bytes, ticket; char data[1]; } guard_upload;
static guard_upload *guard_uploads;
static int64_t guard_tickets, guard_arrivals;           // uploads so far; those that arrived
static int guard_uploads_fail, guard_arrivals_fail;     // so many of the next ones do
static char guard_uploads_lock;
static void guard_hold(void) { while (__atomic_test_and_set(&guard_uploads_lock, __ATOMIC_ACQUIRE)) {} }
static void guard_let_go(void) { __atomic_clear(&guard_uploads_lock, __ATOMIC_RELEASE); }
static bool guard_upload_begin(eg_backend *b, void *to, const void *from, int64_t bytes, int64_t *ticket) {
    (void)b;
    guard_upload *u = (guard_upload *)malloc(sizeof *u + (size_t)bytes);
    guard_hold();
    bool ok = u && guard_uploads_fail <= 0;
    guard_uploads_fail -= !ok;
    if (ok) {
        u->older = guard_uploads;
        u->to = (char *)guard_flip(to);
        u->bytes = bytes;
        *ticket = u->ticket = ++guard_tickets;
        memcpy(u->data, from, (size_t)bytes);
        guard_uploads = u;
    }
    guard_let_go();
    if (!ok) { free(u); eg_raise(EG_ERROR_DEVICE, "guard:0: no upload can be begun"); }
    return ok;
}
static bool guard_arrived(eg_backend *b, int64_t ticket) {
    (void)b;
    guard_hold();
    for (guard_upload **at = &guard_uploads; *at;) {
        guard_upload *u = *at;
        if (u->ticket > ticket) { at = &u->older; continue; }
        memcpy(u->to, u->data, (size_t)u->bytes);
        *at = u->older;
        free(u);
        guard_arrivals++;
    }
    bool ok = guard_arrivals_fail <= 0;
    guard_arrivals_fail -= !ok;
    guard_let_go();
    if (!ok) eg_raise(EG_ERROR_DEVICE, "guard:0: what was uploaded is lost");
    return ok;
}

static void guard_deallocate(eg_backend *b, void *data, int64_t bytes) {
    char *p = (char *)guard_flip(data);
    (void)b, (void)bytes;
    guard_hold();
    for (guard_upload *u = guard_uploads; u; u = u->older)
        if (u->to == p) guard_trouble = "memory was given back that an upload is still to be written to";
    guard_let_go();
    free(p - p[-1]);
    __atomic_fetch_sub(&guard_blocks, 1, __ATOMIC_RELAXED);
}
static bool guard_is_gone(void) {
    if (guard_works < 0 || guard_works-- > 0) return false;
    guard_works = 0;
    eg_raise(EG_ERROR_DEVICE, "guard:0 is gone");
    return true;
}
static bool guard_write(eg_backend *b, void *to, const void *from, int64_t bytes) {
    (void)b;
    if (guard_is_gone()) return false;
    memcpy(guard_flip(to), from, (size_t)bytes);
    return true;
}
static bool guard_read(eg_backend *b, void *to, const void *from, int64_t bytes) {
    (void)b;
    if (guard_is_gone()) return false;
    memcpy(to, guard_flip(from), (size_t)bytes);
    return true;
}

// A copy of the handle that shows the host's address.
static void guard_show(eg_tensor *view, const eg_tensor *x) {
    *view = *x;
    if (x->flags & EGI_NUMBER) return;
    if (x->buffer->backend->host_reads) {
        guard_trouble = "a kernel of the device was given a tensor of the host";
        return;
    }
    int64_t low = 0, high = 0, at = (int64_t)((uintptr_t)x->data - (uintptr_t)x->buffer->data);
    for (int i = 0; i < x->rank; i++) *(x->strides[i] < 0 ? &low : &high) += (x->dims[i] - 1) * x->strides[i];
    int64_t size = eg_dtype_size((eg_dtype)x->dtype);
    if (x->size && (at + low * size < 0 || at + (high + 1) * size > x->buffer->bytes))
        guard_trouble = "a kernel was given a view that leaves its buffer";
    view->data = (char *)guard_flip(x->data);
}
static bool guard_run(egi_kernel kernel, const egi_args *args) {
    eg_tensor in[8], out[EGI_MAX_OUT];
    egi_args shown = *args;
    if (guard_is_gone()) return false;
    for (int i = 0; i < 8; i++) {
        if (!args->in[i] || (kernel == EGI_UPDATE && (i == 2 || i == 3))) continue;     // it reads those anywhere
        guard_show(&in[i], args->in[i]);
        shown.in[i] = &in[i];
    }
    for (int i = 0; i < EGI_MAX_OUT; i++)
        if (args->out[i]) { guard_show(&out[i], args->out[i]); shown.out[i] = &out[i]; }
    __atomic_fetch_add(&guard_kernels, 1, __ATOMIC_RELAXED);
    return egi_backend_cpu()->kernel[kernel](egi_backend_cpu(), &shown);
}
// What the CPU lacks, the device lacks, too.
#define GUARD_KERNEL(NUMBER, name, ...) \
    static bool guard_run_##name(eg_backend *b, const egi_args *args) { \
        (void)b; \
        return guard_run(EGI_##NUMBER, args); \
    }
#define GUARD_ENTRY(NUMBER, name, ...) guard_backend.kernel[EGI_##NUMBER] = guard_run_##name;
#define GUARD_NONE(NUMBER, name, ...)
EGI_KERNEL_TABLE(GUARD_KERNEL, GUARD_KERNEL, GUARD_NONE)

static eg_backend guard_backend;
// Registers the device and makes it this thread's; false with an error where that fails.
static bool guard_start(void) {
    guard_backend = *egi_backend_cpu();
    guard_backend.name = "guard:0";
    guard_backend.host_reads = false;
    guard_backend.allocate = guard_allocate;
    guard_backend.deallocate = guard_deallocate;
    guard_backend.write = guard_write;
    guard_backend.read = guard_read;
    guard_backend.upload = guard_upload_begin;
    guard_backend.arrived = guard_arrived;
    EGI_KERNEL_TABLE(GUARD_ENTRY, GUARD_ENTRY, GUARD_NONE)
    return egi_backend_register(&guard_backend) && eg_set_device("guard:0");
}
#endif
