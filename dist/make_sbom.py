#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""SPDX 2.3 bill of materials of a release, on stdout.
usage: make_sbom.py VERSION SOURCES_TXT RELEASE_DIR   (SOURCE_DATE_EPOCH gives the time)"""
import datetime
import hashlib
import json
import os
import sys

LICENCES = {"hwloc": "BSD-3-Clause", "utf8proc": "MIT AND Unicode-DFS-2015", "jansson": "MIT",
            "xxhash": "BSD-2-Clause"}


def package(name, version, licence, archive, sha256):
    return {"SPDXID": f"SPDXRef-{name}", "name": name, "versionInfo": version,
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION",
            "packageFileName": archive,
            "checksums": [{"algorithm": "SHA256", "checksumValue": sha256}]}


def main():
    version, sources, folder = sys.argv[1:4]
    components = []
    with open(sources, encoding="utf-8") as f:
        for line in f:
            name, component_version, _, archive, sha256 = line.split()
            if name in LICENCES:
                components.append(package(name, component_version, LICENCES[name], archive, sha256))
    products = []
    for archive in sorted(os.listdir(folder)):
        if archive.startswith(f"tern-{version}-"):
            with open(os.path.join(folder, archive), "rb") as f:
                sha256 = hashlib.sha256(f.read()).hexdigest()
            target = archive.removeprefix(f"tern-{version}-").split(".")[0].replace("_", "-")
            products.append(package(f"tern-{target}", version, "MIT", archive, sha256))
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                  "relatedSpdxElement": p["SPDXID"]} for p in products]
    relations += [{"spdxElementId": p["SPDXID"], "relationshipType": "CONTAINS",
                   "relatedSpdxElement": c["SPDXID"]} for p in products for c in components]
    moment = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]),
                                             datetime.timezone.utc)
    digest = hashlib.sha256("".join(p["checksums"][0]["checksumValue"]
                                    for p in products).encode()).hexdigest()
    json.dump({"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
               "name": f"tern-{version}",
               "documentNamespace": f"https://spdx.org/spdxdocs/tern-{version}-{digest[:32]}",
               "creationInfo": {"created": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
                                "creators": ["Tool: make_sbom.py"]},
               "packages": products + components, "relationships": relations},
              sys.stdout, indent=1)
    print()


main()
