#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a program that calls on every function of the public headers by name.

usage: declare.py HEADER... OUTPUT

The text is C and C++ alike. The program links the shared library as a stranger would; the linker
refuses it when a declared function isn't exported, and it asks the dynamic linker for each
function's home, which must be the library and nothing else.
"""

import os
import re
import sys

PROGRAM = """\
/* SPDX-License-Identifier: MIT */
/* Made from the public headers, by declare.py. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

{includes}

struct function {{
    const char *name;
    void (*address)(void);
}};

static const struct function functions[] = {{
{functions}
}};

static bool is_in_library(const struct function *function)
{{
    void *address = NULL;
    Dl_info info;
    memcpy(&address, &function->address, sizeof(address));
    return dladdr(address, &info) != 0 && strstr(info.dli_fname, "/libredbucket.so") != NULL;
}}

int main(void)
{{
    size_t count = sizeof(functions) / sizeof(functions[0]);
    size_t strangers = 0;
    printf("1..1\\n");
    for (size_t i = 0; i < count; i++) {{
        if (!is_in_library(&functions[i])) {{
            printf("# %s is not in the library\\n", functions[i].name);
            strangers++;
        }}
    }}
    printf("%s 1 - all %zu functions are in the shared library\\n", strangers ? "not ok" : "ok",
           count);
    return strangers ? 1 : 0;
}}
"""

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
DECLARATION = re.compile(r"REDBUCKET_API\b[^;]*?\b(redbucket_\w+)\s*\(")


def declared(path):
    with open(path, encoding="utf-8") as header:
        lines = COMMENT.sub("", header.read()).splitlines()
    names = DECLARATION.findall("\n".join(l for l in lines if not l.startswith("#")))
    if not names:
        sys.exit(f"{path}:1: found no declaration")
    return names


def main():
    *headers, output = sys.argv[1:]
    includes = "\n".join(f"#include <redbucket/{os.path.basename(path)}>" for path in headers)
    names = [name for path in headers for name in declared(path)]
    table = ",\n".join(f'    {{"{name}", (void (*)(void)){name}}}' for name in names)
    with open(output, "w", encoding="utf-8") as file:
        file.write(PROGRAM.format(includes=includes, functions=table))


if __name__ == "__main__":
    main()
