#!/bin/sh
# Makes certificates for development and tests, never for anything that others reach:
#   ca.pem ca.key          a certificate authority
#   server.pem server.key  for localhost, 127.0.0.1 and ::1
#   client.pem client.key  for mutual TLS
# Usage: certs/make_certs.sh [FOLDER]    (default: the folder of this script)
# Safe to run again: it makes all of them anew only when one is missing, ends within a day, or does not fit the others.
set -eu

readonly days=365

fail() {
  echo "certs: $1" >&2
  exit 1
}

# The public key of certificate $1, and of private key $2, must be the same.
same_key() {
  [ "$(openssl x509 -in "$1" -noout -pubkey 2>&1)" = "$(openssl pkey -in "$2" -pubout 2>/dev/null)" ]
}

# True when folder $1 holds all six files, they fit together, and they last for another day.
usable() {
  for name in ca server client; do
    [ -f "$1/$name.pem" ] && [ -f "$1/$name.key" ] || return 1
    openssl x509 -in "$1/$name.pem" -noout -checkend 86400 >/dev/null 2>&1 || return 1
    openssl verify -CAfile "$1/ca.pem" "$1/$name.pem" >/dev/null 2>&1 || return 1
    same_key "$1/$name.pem" "$1/$name.key" || return 1
  done
}

# Python 3.13 and later refuse a chain without the key usages and key identifiers.
write_config() {
  cat <<'CONFIG'
[req]
distinguished_name = name
[name]
[ca]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = DNS:localhost, IP:127.0.0.1, IP:::1
[client]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
CONFIG
}

# request NAME SUBJECT OPTION...: a new P-256 key NAME.key and a request for it; with -x509, a certificate.
request() {
  name=$1 subject=$2
  shift 2
  openssl req -new -config config -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
    -sha256 -subj "/CN=$subject" -keyout "$name.key" "$@"
}

# leaf NAME SUBJECT: a key and a certificate signed by the authority.
leaf() {
  request "$1" "$2" -out "$1.csr" &&
    openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -set_serial "0x$(openssl rand -hex 16)" \
      -sha256 -days "$days" -extfile config -extensions "$1" -out "$1.pem"
}

make_all() {
  write_config >config &&
    request ca "tricorn development CA" -x509 -days "$days" -extensions ca -out ca.pem &&
    leaf server localhost &&
    leaf client "tricorn development client" &&
    chmod 644 ca.pem server.pem client.pem
}

command -v openssl >/dev/null || fail "openssl is missing; on Debian: apt-get install openssl"
folder=${1:-$(dirname "$0")}
[ -d "$folder" ] || fail "no folder $folder"
folder=$(CDPATH='' cd "$folder" && pwd)

umask 077
exec 9>"$folder/.lock"
if command -v flock >/dev/null; then flock 9; fi # two runs at once would mix their files

if usable "$folder"; then
  verdict="up to date"
else
  new=$(mktemp -d "$folder/.new.XXXXXX")
  trap 'rm -rf "$new"' EXIT
  (cd "$new" && make_all) >"$new/log" 2>&1 || { cat "$new/log" >&2; fail "openssl failed, see above"; }
  mv "$new"/*.pem "$new"/*.key "$folder"
  verdict="made a development CA, a server and a client certificate"
fi
echo "certs: $verdict, in $folder, until $(openssl x509 -in "$folder/server.pem" -noout -enddate | cut -d= -f2)"
