#include "state/testing/faulty_vfs.h"

#include <csignal>
#include <new>

#include <sqlite3.h>
#include <unistd.h>

#include "base/check.h"

namespace state::testing {

struct FaultyVfs::Impl {
  sqlite3_vfs vfs{};
  sqlite3_vfs* real = nullptr;
  std::uint64_t calls = 0;
  std::uint64_t nth = 0;
  Failing failing = Failing::kOnce;
  int code = SQLITE_OK;
  bool kills = false;

  // The code to fail with, or SQLITE_OK.
  int next() {
    ++calls;
    const bool fails = nth != 0 && (failing == Failing::kOnce ? calls == nth : calls >= nth);
    return fails ? code : SQLITE_OK;
  }
  int fail() const {
    if (kills) ::kill(::getpid(), SIGKILL);
    return code;
  }
};

namespace {

// Lies before the real file in the same block of memory.
struct File {
  sqlite3_file base;
  FaultyVfs::Impl* owner;
};
constexpr int kFileSize = (static_cast<int>(sizeof(File)) + 15) / 16 * 16;

FaultyVfs::Impl& owner_of(sqlite3_file* file) { return *reinterpret_cast<File*>(file)->owner; }
sqlite3_file* real_of(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<char*>(file) + kFileSize);
}
FaultyVfs::Impl& impl_of(sqlite3_vfs* vfs) { return *static_cast<FaultyVfs::Impl*>(vfs->pAppData); }

const sqlite3_io_methods kMethods = {
    .iVersion = 2,
    .xClose = [](sqlite3_file* f) { return real_of(f)->pMethods->xClose(real_of(f)); },
    .xRead = [](sqlite3_file* f, void* to, int n,
                sqlite3_int64 at) { return real_of(f)->pMethods->xRead(real_of(f), to, n, at); },
    .xWrite =
        [](sqlite3_file* f, const void* from, int n, sqlite3_int64 at) {
          if (owner_of(f).next() != SQLITE_OK) {
            // As a disk does it: some of it is there.
            real_of(f)->pMethods->xWrite(real_of(f), from, n / 2, at);
            return owner_of(f).fail();
          }
          return real_of(f)->pMethods->xWrite(real_of(f), from, n, at);
        },
    .xTruncate =
        [](sqlite3_file* f, sqlite3_int64 size) {
          if (owner_of(f).next() != SQLITE_OK) return owner_of(f).fail();
          return real_of(f)->pMethods->xTruncate(real_of(f), size);
        },
    .xSync =
        [](sqlite3_file* f, int flags) {
          if (owner_of(f).next() != SQLITE_OK) return owner_of(f).fail();
          return real_of(f)->pMethods->xSync(real_of(f), flags);
        },
    .xFileSize = [](sqlite3_file* f, sqlite3_int64* size) { return real_of(f)->pMethods->xFileSize(real_of(f), size); },
    .xLock = [](sqlite3_file* f, int level) { return real_of(f)->pMethods->xLock(real_of(f), level); },
    .xUnlock = [](sqlite3_file* f, int level) { return real_of(f)->pMethods->xUnlock(real_of(f), level); },
    .xCheckReservedLock = [](sqlite3_file* f,
                             int* out) { return real_of(f)->pMethods->xCheckReservedLock(real_of(f), out); },
    .xFileControl = [](sqlite3_file* f, int op,
                       void* arg) { return real_of(f)->pMethods->xFileControl(real_of(f), op, arg); },
    .xSectorSize = [](sqlite3_file* f) { return real_of(f)->pMethods->xSectorSize(real_of(f)); },
    .xDeviceCharacteristics = [](sqlite3_file* f) { return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f)); },
    .xShmMap = [](sqlite3_file* f, int page, int size, int extend,
                  void volatile** out) { return real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend, out); },
    .xShmLock = [](sqlite3_file* f, int offset, int n,
                   int flags) { return real_of(f)->pMethods->xShmLock(real_of(f), offset, n, flags); },
    .xShmBarrier = [](sqlite3_file* f) { real_of(f)->pMethods->xShmBarrier(real_of(f)); },
    .xShmUnmap = [](sqlite3_file* f, int drop) { return real_of(f)->pMethods->xShmUnmap(real_of(f), drop); },
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

int open_file(sqlite3_vfs* vfs, const char* name, sqlite3_file* memory, int flags, int* out_flags) {
  FaultyVfs::Impl& impl = impl_of(vfs);
  File* file = new (memory) File{};
  if ((flags & SQLITE_OPEN_CREATE) != 0) {
    if (impl.next() != SQLITE_OK) return impl.fail(), SQLITE_CANTOPEN;
  }
  const int code = impl.real->xOpen(impl.real, name, real_of(memory), flags, out_flags);
  if (code != SQLITE_OK) return code;
  file->owner = &impl;
  file->base.pMethods = &kMethods;
  return SQLITE_OK;
}

int delete_file(sqlite3_vfs* vfs, const char* name, int sync) {
  if (impl_of(vfs).next() != SQLITE_OK) return impl_of(vfs).fail();
  return impl_of(vfs).real->xDelete(impl_of(vfs).real, name, sync);
}

}  // namespace

FaultyVfs::FaultyVfs() : impl_(std::make_unique<Impl>()) {
  impl_->real = sqlite3_vfs_find(nullptr);
  impl_->vfs = *impl_->real;
  impl_->vfs.zName = "faulty";
  impl_->vfs.pAppData = impl_.get();
  impl_->vfs.szOsFile = kFileSize + impl_->real->szOsFile;
  impl_->vfs.xOpen = open_file;
  impl_->vfs.xDelete = delete_file;
  impl_->vfs.xAccess = [](sqlite3_vfs* vfs, const char* name, int flags, int* out) {
    return impl_of(vfs).real->xAccess(impl_of(vfs).real, name, flags, out);
  };
  impl_->vfs.xFullPathname = [](sqlite3_vfs* vfs, const char* name, int size, char* out) {
    return impl_of(vfs).real->xFullPathname(impl_of(vfs).real, name, size, out);
  };
  base::check(sqlite3_vfs_register(&impl_->vfs, 1) == SQLITE_OK, "the faulty file layer is registered");
}

FaultyVfs::~FaultyVfs() { sqlite3_vfs_unregister(&impl_->vfs); }

void FaultyVfs::fail(std::uint64_t nth, Failing failing, int code) {
  impl_->calls = 0;
  impl_->nth = nth;
  impl_->failing = failing;
  impl_->code = code;
  impl_->kills = false;
}

void FaultyVfs::kill_at(std::uint64_t nth) {
  fail(nth, Failing::kOnce, SQLITE_ABORT);
  impl_->kills = true;
}

bool FaultyVfs::has_failed() const { return impl_->nth != 0 && impl_->calls >= impl_->nth; }

}  // namespace state::testing
