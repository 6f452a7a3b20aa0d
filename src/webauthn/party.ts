// The relying party of our own pages (WebAuthn Level 3 §4).
import type { Config } from '../tenant/config.ts';

/** Who asks: the relying party, by a domain and the origins that may answer. */
export interface RelyingParty {
  /** The RP ID: a host name, without a port. */
  id: string;
  origin: string | string[];
  /** What browsers show. */
  name: string;
}

export interface PartyDependencies {
  /** The public origin. */
  baseUrl: string;
  config: Pick<Config, 'settings'>;
}

/** The relying party where our own pages ask: by our host, whose origin alone may answer. */
export function ownParty({ baseUrl, config }: PartyDependencies): RelyingParty & { origin: string } {
  const { hostname: id, origin } = new URL(baseUrl);
  return { id, origin, name: config.settings().tenant.friendly_name };
}
