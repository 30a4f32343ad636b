#include "src/files/pdb_budget.h"

enum {
    MEMORY_MAX = 1024 * 1024 * 1024,
    NOTES_HASHED_MAX = 1024 * 1024 * 1024,
    HASHING = 2, /* how many times as long as comparing bytes it takes to hash them */
};

#define HASHED_MAX (UINT64_C(2) << 30)

static const char too_many[] = "too many other files had to be compared";

const char *pdb_budget_take_memory(struct pdb_budget *budget, struct work *work, size_t size)
{
    if (size > MEMORY_MAX - budget->memory)
        return "the PDBs of other modules take 1 GiB already";
    if (!work_take_memory(work, size))
        return "the bound on memory was reached";
    budget->memory += size;
    return NULL;
}

void pdb_budget_return_memory(struct pdb_budget *budget, struct work *work, size_t size)
{
    work_return_memory(work, size);
    budget->memory -= size;
}

const char *pdb_budget_take_hashing(struct pdb_budget *budget, struct work *work, uint64_t size)
{
    if (size > HASHED_MAX - budget->hashed)
        return too_many;
    if (!work_take_bytes(work, HASHING * size))
        return "the bound on work was reached before it was compared";
    budget->hashed += size;
    return NULL;
}

const char *pdb_budget_take_note(struct pdb_budget *budget, uint64_t size)
{
    if (size > NOTES_HASHED_MAX - budget->notes_hashed)
        return too_many;
    budget->notes_hashed += size;
    return NULL;
}
