#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""SPDX 2.3 bill of materials of a release, on stdout.
usage: make_sbom.py VERSION SOURCES_TXT C_LIBRARIES_TXT RELEASE_DIR
(SOURCE_DATE_EPOCH gives the time; C_LIBRARIES_TXT has lines TARGET LIBRARY VERSION)"""
import datetime
import hashlib
import json
import os
import sys

LICENCES = {"hwloc": "BSD-3-Clause", "utf8proc": "MIT AND Unicode-DFS-2015", "jansson": "MIT",
            "xxhash": "BSD-2-Clause", "glibc": "LGPL-2.1-or-later", "mingw-w64": "ZPL-2.1"}


def package(name, version, licence, archive=None, sha256=None):
    result = {"SPDXID": f"SPDXRef-{name}", "name": name, "versionInfo": version,
              "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
              "licenseConcluded": licence, "licenseDeclared": licence,
              "copyrightText": "NOASSERTION"}
    if archive:
        result["packageFileName"] = archive
        result["checksums"] = [{"algorithm": "SHA256", "checksumValue": sha256}]
    return result


def relation(a, kind, b):
    return {"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}


def read_sources(path):
    """The packages of the libraries in every archive."""
    with open(path, encoding="utf-8") as f:
        for line in f:
            name, version, _, archive, sha256 = line.split()
            if name in LICENCES:
                yield package(name, version, LICENCES[name], archive, sha256)


def read_c_libraries(path):
    """The package of the C library by target."""
    with open(path, encoding="utf-8") as f:
        for line in f:
            target, name, version = line.split()
            found = package(name, version, LICENCES[name])
            found["SPDXID"] += "-" + target.replace("_", "-")
            yield target, found


def main():
    version, sources, c_libraries, folder = sys.argv[1:5]
    common = list(read_sources(sources))
    c_library = dict(read_c_libraries(c_libraries))
    products, relations = [], []
    for archive in sorted(os.listdir(folder)):
        if not archive.startswith(f"tern-{version}-"):
            continue
        with open(os.path.join(folder, archive), "rb") as f:
            sha256 = hashlib.sha256(f.read()).hexdigest()
        target = archive.removeprefix(f"tern-{version}-").split(".")[0]
        product = package("tern-" + target.replace("_", "-"), version, "MIT", archive, sha256)
        products.append(product)
        relations.append(relation("SPDXRef-DOCUMENT", "DESCRIBES", product["SPDXID"]))
        inside = common + ([c_library[target]] if target in c_library else [])
        relations += [relation(product["SPDXID"], "CONTAINS", p["SPDXID"]) for p in inside]
    moment = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]),
                                             datetime.timezone.utc)
    digest = hashlib.sha256("".join(p["checksums"][0]["checksumValue"]
                                    for p in products).encode()).hexdigest()
    json.dump({"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
               "name": f"tern-{version}",
               "documentNamespace": f"https://spdx.org/spdxdocs/tern-{version}-{digest[:32]}",
               "creationInfo": {"created": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
                                "creators": ["Tool: make_sbom.py"]},
               "packages": products + common + list(c_library.values()),
               "relationships": relations},
              sys.stdout, indent=1)
    print()


main()
