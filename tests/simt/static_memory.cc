/* tests/simt/static_memory.cc: the static shared memory of the kernels in this program, which
 * device.cuh makes thread-local variables of functions. The program's own symbols tell where they
 * are.
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

extern "C" {
thread_local char simt_static_mark; /* where it is tells where the block is */
}

namespace
{

struct variable {
    size_t at, bytes; /* in a thread's block of the program's thread-local storage */
};

variable variables[VARIABLES_MAX];
int variable_count;
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

void read_symbols(const char *image, const Elf64_Shdr &table, const Elf64_Shdr &names)
{
    const Elf64_Sym *symbols = (const Elf64_Sym *)(image + table.sh_offset);
    for (size_t i = 0; i < table.sh_size / sizeof *symbols; i++) {
        const Elf64_Sym &symbol = symbols[i];
        const char *name = image + names.sh_offset + symbol.st_name;
        if (ELF64_ST_TYPE(symbol.st_info) != STT_TLS)
            continue;
        if (strcmp(name, "simt_static_mark") == 0)
            mark_at = symbol.st_value;
        if (!is_local(name))
            continue;
        if (variable_count == VARIABLES_MAX)
            fail("more variables than VARIABLES_MAX");
        variables[variable_count++] = {symbol.st_value, symbol.st_size};
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
    munmap(whole, (size_t)about.st_size);
    close(file);
}

} // namespace

void simt_spoil_static(void)
{
    pthread_once(&found, find_variables);
    char *block = &simt_static_mark - mark_at;
    for (int i = 0; i < variable_count; i++)
        memset(block + variables[i].at, 0xff, variables[i].bytes);
}
