// The public part of signing keys, as the API shows it.
import { createHash, X509Certificate } from 'node:crypto';
import type { Frozen } from '../../records/base/record.ts';
import { type SigningKeyRecord, signsSince } from '../../records/state/engine.ts';

/**
 * Returns a signing key without its private part: its certificate, its thumbprint, and whether it is current, next or
 * previous.
 */
export function publicView(key: Frozen<SigningKeyRecord>) {
  const { id, state, x5c } = key;
  const certificate = new X509Certificate(Buffer.from(x5c[0] ?? '', 'base64'));
  const thumbprint = createHash('sha1').update(certificate.raw).digest('hex').toUpperCase();
  return {
    kid: id,
    cert: certificate.toString(),
    fingerprint: (thumbprint.match(/../g) ?? []).join(':'),
    thumbprint,
    ...(state === 'current'
      ? { current: true, current_since: new Date(signsSince(key) * 1000).toISOString() }
      : {}),
    ...(state === 'next' ? { next: true } : {}),
    ...(state === 'previous' ? { previous: true } : {}),
  };
}
