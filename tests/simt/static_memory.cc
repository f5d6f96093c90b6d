/* tests/simt/static_memory.cc: the static shared memory of the kernels in this program, which
 * device.cuh makes thread-local variables of functions. The program's own symbols say where they
 * are, and of which kernel.
 */
#include "machine.hh"

#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define VARIABLES_MAX 4096
#define KERNELS_MAX 4096

extern "C" {
thread_local char simt_static_mark; /* where it is says where the block is */
}

namespace
{

struct variable {
    size_t at, bytes;   /* in a thread's block of the program's thread-local storage */
    const char *kernel; /* the mangled name of the one that it is local to; NULL: all may use it */
};

struct kernel {
    const char *code;
    const char *name; /* mangled */
};

variable variables[VARIABLES_MAX];
kernel kernels[KERNELS_MAX];
int variable_count, kernel_count;
size_t mark_at;
pthread_once_t found = PTHREAD_ONCE_INIT;

[[noreturn]] void fail(const char *what)
{
    fprintf(stderr, "simt: /proc/self/exe: %s\n", what);
    abort();
}

/* As g++ mangles what is local to a function. */
bool is_local(const char *name)
{
    return strncmp(name, "_ZZ", 3) == 0;
}

/* Kernels end in _kernel, before what mangles their parameters: scripts/check/waits.py. */
bool is_kernel(const char *name)
{
    return strncmp(name, "_Z", 2) == 0 && strstr(name, "_kernel");
}

/* Where the program is loaded: a symbol's address less its value. */
const char *loaded_at(const char *image, const Elf64_Shdr &table, const Elf64_Shdr &names)
{
    const Elf64_Sym *symbols = (const Elf64_Sym *)(image + table.sh_offset);
    for (size_t i = 0; i < table.sh_size / sizeof *symbols; i++) {
        if (strcmp(image + names.sh_offset + symbols[i].st_name, "simt_launch") == 0)
            return (const char *)simt_launch - symbols[i].st_value;
    }
    fail("has no simt_launch");
}

void read_symbols(const char *image, const Elf64_Shdr &table, const Elf64_Shdr &names)
{
    const char *base = loaded_at(image, table, names);
    const Elf64_Sym *symbols = (const Elf64_Sym *)(image + table.sh_offset);
    for (size_t i = 0; i < table.sh_size / sizeof *symbols; i++) {
        const Elf64_Sym &symbol = symbols[i];
        const char *name = image + names.sh_offset + symbol.st_name;
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && is_kernel(name)) {
            if (kernel_count == KERNELS_MAX)
                fail("more kernels than KERNELS_MAX");
            kernels[kernel_count++] = {base + symbol.st_value, name};
        }
        if (ELF64_ST_TYPE(symbol.st_info) != STT_TLS)
            continue;
        if (strcmp(name, "simt_static_mark") == 0)
            mark_at = symbol.st_value;
        if (!is_local(name))
            continue;
        if (variable_count == VARIABLES_MAX)
            fail("more variables than VARIABLES_MAX");
        variables[variable_count++] = {symbol.st_value, symbol.st_size,
                                       strstr(name, "_kernel") ? name : nullptr};
    }
}

void find_variables()
{
    struct stat about;
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &about) != 0)
        fail("cannot be opened");
    void *whole = mmap(nullptr, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (whole == MAP_FAILED)
        fail("cannot be read");
    const char *image = (const char *)whole;
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)image;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(image + head->e_shoff);
    bool any = false;
    for (int i = 0; i < head->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB)
            continue;
        any = true;
        read_symbols(image, sections[i], sections[sections[i].sh_link]);
    }
    if (!any)
        fail("has no symbols");
    close(file); /* the names stay mapped */
}

/* The mangled name, or NULL: some other function. */
const char *name_of(const void *code)
{
    for (int i = 0; i < kernel_count; i++) {
        if (kernels[i].code == code)
            return kernels[i].name;
    }
    return nullptr;
}

/* Is a variable "_ZZ<function>E<name>" local to the function "_Z<function>"? */
bool is_of(const variable &v, const char *function)
{
    size_t length = strlen(function + 2);
    return strncmp(v.kernel + 3, function + 2, length) == 0 && v.kernel[3 + length] == 'E';
}

} // namespace

void simt_spoil_static(const void *kernel)
{
    pthread_once(&found, find_variables);
    /* As a number: it lies outside the mark, which the compiler knows the size of. */
    uintptr_t block = (uintptr_t)&simt_static_mark - mark_at;
    const char *name = name_of(kernel);
    for (int i = 0; i < variable_count; i++) {
        const variable &v = variables[i];
        if (!v.kernel || !name || is_of(v, name))
            memset((void *)(block + v.at), 0xff, v.bytes);
    }
}
