#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# recipes.sh ROOT CMAKE: what can be said of the recipes in ROOT/packaging without their package managers.
#   - They have the version of the project.
#   - Each HEDDLE_* option that one sets is an option of CMakeLists.txt, and each package that one disables
#     is looked for there.
#   - vcpkg.json is JSON, and portfile.cmake runs with stand-ins of vcpkg's functions.
#   - The recipes in Python compile; Conan's runs with stand-ins of Conan's classes (where Python is).
#   - The Dockerfile runs the two commands of the README's section "Try it".
set -uo pipefail
root=$1
cmake=$2
packaging=$root/packaging
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
complain() { echo "$*"; status=1; }

version=$(sed -nE 's/^project\(HEDDLE VERSION ([0-9.]+).*/\1/p' "$root/CMakeLists.txt")
for line in 'spack/packages/heddle/package.py:version("'"$version"'"' 'conan/conanfile.py:version = "'"$version"'"' \
  'vcpkg/ports/heddle/vcpkg.json:"version": "'"$version"'"'; do
  grep -qF -- "${line#*:}" "$packaging/${line%%:*}" || complain "${line%%:*} is not of version $version"
done

while IFS=: read -r file option; do
  grep -qE "^(option|set)\($option " "$root/CMakeLists.txt" || complain "$file sets $option, which is no option"
done < <(cd "$packaging" && grep -roE 'HEDDLE_[A-Z]+' . | sort -u)
while IFS=: read -r file package; do
  package=${package#CMAKE_DISABLE_FIND_PACKAGE_}
  grep -q "find_package($package " "$root/cmake/HeddleDependencies.cmake" ||
    complain "$file disables $package, which is not looked for"
done < <(cd "$packaging" && grep -roE 'CMAKE_DISABLE_FIND_PACKAGE_[A-Za-z_]*[A-Za-z]' . | sort -u)

# vcpkg's functions, as its manual describes them, print what they get.
cat > "$work/port.cmake" <<'END'
cmake_minimum_required(VERSION 3.23)
foreach(name IN ITEMS vcpkg_check_features vcpkg_cmake_configure vcpkg_cmake_install vcpkg_cmake_config_fixup
                      vcpkg_fixup_pkgconfig vcpkg_copy_tools vcpkg_install_copyright)
  cmake_language(EVAL CODE "function(${name})\n  message(STATUS \"${name} \${ARGN}\")\nendfunction()")
endforeach()
file(READ "${PORT}/vcpkg.json" json)
string(JSON name GET "${json}" name)
string(JSON full GET "${json}" features full dependencies 0)
set(CURRENT_PACKAGES_DIR "${WORK}/packages")
set(FEATURES tools)
include("${PORT}/portfile.cmake")
if(NOT name STREQUAL "heddle" OR NOT EXISTS "${SOURCE_PATH}/include/heddle/core.hpp")
  message(FATAL_ERROR "${name} at ${SOURCE_PATH}")
endif()
END
"$cmake" "-DPORT=$packaging/vcpkg/ports/heddle" "-DWORK=$work" -P "$work/port.cmake" > "$work/port" 2>&1 ||
  complain "the port: $(cat "$work/port")"
while read -r tool; do
  grep -q '^// package: ' "$root/tools/$tool/main.cpp" || complain "the port copies heddle-$tool, which is not installed"
done < <(sed -n 's/.*vcpkg_copy_tools TOOL_NAMES;//p' "$work/port" | grep -oE 'heddle-[a-z]+' | sed 's/heddle-//')
grep -q 'vcpkg_install_copyright' "$work/port" || complain "the port does not end: $(cat "$work/port")"

if command -v python3 > /dev/null; then
  PYTHONDONTWRITEBYTECODE=1 python3 - "$packaging" > "$work/python" 2>&1 <<'END' || complain "$(tail -3 "$work/python")"
import ast, os, sys, types

packaging = sys.argv[1]
package = os.path.join(packaging, "spack/packages/heddle/package.py")
ast.parse(open(package).read(), package)

class ConanFile:  # stand-ins
    recipe_folder = os.path.join(packaging, "conan")
    export_sources_folder = "out"
    options = None
    def __init__(self):
        self.required, self.copied = [], []
        self.cpp_info = types.SimpleNamespace(set_property=lambda *a: None, builddirs=[])
    def requires(self, name, **traits): self.required.append(name)

class Toolchain:
    last = None
    def __init__(self, recipe): self.cache_variables = {}; Toolchain.last = self
    def generate(self): pass

class Doing:
    def __init__(self, recipe): pass
    def generate(self): pass
    def configure(self): pass
    def build(self): pass
    def install(self): pass

def module(name, **has): sys.modules[name] = types.ModuleType(name); sys.modules[name].__dict__.update(has)
def copy(recipe, pattern, src, dst):
    import glob
    if not glob.glob(os.path.join(src, pattern)): raise SystemExit("conanfile.py copies no " + pattern)
module("conan", ConanFile=ConanFile)
module("conan.tools")
module("conan.tools.build", check_min_cppstd=lambda recipe, standard: None)
module("conan.tools.cmake", CMake=Doing, CMakeDeps=Doing, CMakeToolchain=Toolchain, cmake_layout=lambda r: None)
module("conan.tools.files", copy=copy)
sys.path.insert(0, os.path.join(packaging, "conan"))
import conanfile
choices = conanfile.Heddle.options
for full in choices["full"]:
    for json, tools in ((j, t) for j in choices["json"] for t in choices["tools"]):
        recipe = conanfile.Heddle()
        recipe.options = types.SimpleNamespace(full=full, json=json, tools=tools)
        for step in ("export_sources", "layout", "requirements", "validate", "generate", "build", "package", "package_info"):
            getattr(recipe, step)()
        assert len(recipe.required) == full + json + tools, recipe.required
        assert Toolchain.last.cache_variables["HEDDLE_TOOLS"] == tools
        assert Toolchain.last.cache_variables["CMAKE_DISABLE_FIND_PACKAGE_Kokkos"] == (not full)
END
else
  echo "python3 is not installed: the recipes in Python are not read"
fi

wanted=$(awk '/^## Try it/ { on = 1 } on && /^```sh/ { open = 1; next } open && /^```/ { exit } open && /^scripts\// { print $1 }' "$root/README.md")
run=$(sed -nE 's/^RUN (scripts\/.*)/\1/p' "$packaging/docker/Dockerfile")
[[ -n $run && $run == "$wanted" ]] || complain "the Dockerfile runs $run, and the README says $wanted"
((status == 0)) && echo "the recipes of version $version are well formed"
exit $status
