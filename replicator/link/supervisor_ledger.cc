// The ledger and the audit trail for those who look: read again and again, and kept as a snapshot.
#include <algorithm>

#include "iggy/certificate.h"
#include "replicator/link/supervisor.h"

namespace replicator {

namespace {
constexpr base::Duration kReadEvery = std::chrono::seconds(5);
constexpr int kShare = 50;  // reading takes at most 1/50 of the time, however long the ledger
}  // namespace

base::Task<void> Supervisor::watch_ledger() {
  while (!publish_stop_.is_set()) {
    const base::TimePoint begin = clock_.now();
    if (!config_.admin_tls_cert.empty()) {  // renewed without a restart
      admin_certificate_ends_ = iggy::end_of_certificate_file(config_.admin_tls_cert);
    }
    auto gaps_call = store_.gaps();
    auto gaps = co_await std::move(gaps_call);
    auto events_call = store_.events(kLedgerRowsMax);
    auto events = co_await std::move(events_call);
    if (gaps && events) {
      auto ledger = std::make_shared<Ledger>();
      ledger->rows = gaps->size();
      for (const state::GapRow& gap : *gaps) {
        if (!gap.resolved_as.empty()) continue;
        ++ledger->open;
        ++ledger->open_of[gap.key];
      }
      std::ranges::sort(*gaps, [](const state::GapRow& a, const state::GapRow& b) {
        const bool a_closed = !a.resolved_as.empty(), b_closed = !b.resolved_as.empty();
        return a_closed != b_closed ? b_closed : a.id > b.id;
      });
      gaps->resize(std::min(gaps->size(), kLedgerRowsMax));
      ledger->newest_gaps = std::move(*gaps);
      std::ranges::reverse(*events);
      ledger->newest_events = std::move(*events);
      ledger_ = std::move(ledger);
    }
    const base::Duration took = clock_.now() - begin;
    auto wait =
        base::wait_until(clock_, publish_stop_, clock_.now() + std::max<base::Duration>(kReadEvery, took * kShare));
    co_await std::move(wait);
  }
}

}  // namespace replicator
