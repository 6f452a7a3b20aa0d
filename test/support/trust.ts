// The authorities whose certificates this process accepts, for clients that use `fetch`.
import { getCACertificates, setDefaultCACertificates } from 'node:tls';

/** Has this process trust an authority (PEM) from now on. */
export function trust(ca: string): void {
  // Setting the list makes Node parse all CAs again.
  if (!getCACertificates('default').includes(ca))
    setDefaultCACertificates([...getCACertificates('default'), ca]);
}
