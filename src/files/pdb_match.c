#include "src/files/pdb_match.h"

#include "util/sha256.h"

enum {
    FILE_SIZE_MAX = 256 * 1024 * 1024,
    GUID_SIZE = 16, /* of the id, whose rest is the stamp */
};

bool pdb_match_has_id(const struct pe_debug *debug, const uint8_t id[PORTABLE_PDB_ID_SIZE])
{
    /* A PDB that was converted from the Windows format keeps only the GUID of the id. */
    size_t id_size = debug->portable ? sizeof debug->id : GUID_SIZE;
    return !debug->has_pdb || memcmp(id, debug->id, id_size) == 0;
}

static const char other_id[] = "it has another id";

const char *pdb_match_tag(const struct pe_debug *debug, const struct file_tag *tag)
{
    if (tag->kind != FILE_TAG_PDB || tag->refused)
        return tag->kind == FILE_TAG_PDB ? tag->refused : NULL;
    return pdb_match_has_id(debug, tag->id) ? NULL : other_id;
}

/* Notes that no image can use a PDB. Returns why. */
static const char *refuse(struct file_candidate *candidate, const char *reason)
{
    file_tag_set(&candidate->tag, FILE_TAG_PDB, "", 0);
    return candidate->tag.refused = reason;
}

const char *pdb_match_id(const struct pe_debug *debug, struct file_candidate *candidate, struct portable_pdb *ret)
{
    static const char older[] = "Microsoft C/C++ MSF 7.00";
    if (candidate->size >= sizeof older && memcmp(candidate->bytes, older, sizeof older - 1) == 0)
        return refuse(candidate, "it has the format of Windows PDBs, which is not read");
    if (portable_pdb_open(candidate->bytes, (size_t)candidate->size, ret) < 0)
        return refuse(candidate, "it is not a portable PDB, or is damaged");
    file_tag_set(&candidate->tag, FILE_TAG_PDB, ret->id, sizeof ret->id);
    return pdb_match_has_id(debug, ret->id) ? NULL : other_id;
}

/* Hashes a PDB as its checksum does: with zeros in place of the id. */
static void hash_pdb(const struct file_candidate *candidate, const struct portable_pdb *pdb, uint8_t ret[SHA256_SIZE])
{
    static const uint8_t zeros[PORTABLE_PDB_ID_SIZE];
    uint64_t after = pdb->id_offset + sizeof zeros;
    struct sha256 hash;
    sha256_begin(&hash);
    sha256_add(&hash, candidate->bytes, (size_t)pdb->id_offset);
    sha256_add(&hash, zeros, sizeof zeros);
    sha256_add(&hash, candidate->bytes + after, (size_t)(candidate->size - after));
    sha256_end(&hash, ret);
}

/* False if the image has a checksum of a kind that is known here, and none of them is that of the file. */
static bool checksum_matches(const struct pe_debug *debug, const struct file_candidate *candidate,
                             const struct portable_pdb *pdb)
{
    uint8_t digest[SHA256_SIZE];
    bool known = false;
    for (unsigned i = 0; i < debug->checksum_count; i++) {
        const struct pe_checksum *checksum = &debug->checksums[i];
        if (strcmp(checksum->algorithm, "SHA256") != 0 || checksum->size != SHA256_SIZE)
            continue;
        if (!known)
            hash_pdb(candidate, pdb, digest);
        known = true;
        if (memcmp(digest, checksum->bytes, SHA256_SIZE) == 0)
            return true;
    }
    return !known;
}

const char *pdb_match_file(const struct pe_debug *debug, struct file_candidate *candidate, struct pdb_budget *budget,
                           struct work *work, struct portable_pdb *ret)
{
    if (candidate->size > FILE_SIZE_MAX)
        return refuse(candidate, "it is larger than 256 MiB");
    const char *reason = pdb_match_id(debug, candidate, ret);
    if (!reason && debug->portable && debug->checksum_count) {
        reason = pdb_budget_take_hashing(budget, work, candidate->size);
        if (!reason && !checksum_matches(debug, candidate, ret))
            reason = "it has the right id, but another checksum";
    }
    return reason;
}
