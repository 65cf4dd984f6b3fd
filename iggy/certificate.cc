#include "iggy/certificate.h"

#include <ctime>
#include <memory>

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

namespace iggy {

std::optional<std::uint64_t> end_of(const X509* certificate) {
  std::tm utc{};
  if (certificate == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &utc) != 1) return std::nullopt;
  const std::time_t seconds = timegm(&utc);
  if (seconds < 0) return std::nullopt;
  return static_cast<std::uint64_t>(seconds) * 1'000'000;
}

std::optional<std::uint64_t> end_of_certificate_file(const std::string& path) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> file(BIO_new_file(path.c_str(), "r"), BIO_free);
  if (!file) return std::nullopt;
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr), X509_free);
  return end_of(certificate.get());
}

}  // namespace iggy
