// Package secret finds what jobs name as {"secret": "name"}, and keeps secrets of its own, encrypted.
//
// # Sources
//
// A Finder asks its sources in turn: the environment of the worker, a folder with one file a secret, and the Vault. The
// first that has the name counts; an empty value is none. The environment and the folder are the operator's, so they serve
// one tenant alone, the one that they are made for. Nothing is remembered: a changed secret counts from the next look-up.
//
// # The vault
//
// The item secret#TENANT / NAME holds a secret, sealed by AES-256-GCM under a key of the Ring, with a random nonce of 96 bits.
// Tenant and name are authenticated with it: a sealed value that is moved to another name or tenant does not open. The store
// never holds a key, and no answer of the vault but Value holds a value.
//
// The newest key of the ring, its first, seals; all of them open. To change keys, put a new one first and call Rotate: it
// reads the ring anew and seals again what an older key has sealed, one item after another, each under its version. A crash
// in the midst of it leaves some under the old key, which still opens them, and Rotate goes on from there. Only when it has
// ended well are the older keys of no use.
//
// # What it does not do
//
// It does not hide how long a value is, nor its name. Whoever writes to the store can put back an older value of the same name.
// A deleted value's sealed form stays in the files of an engine, and in backups, until they are compacted or removed: what
// makes it unreadable is the loss of its key.
package secret
