// What the DNS says of a name that somebody claims to own.
import { Resolver } from 'node:dns/promises';

export interface Dns {
  /** The texts of its TXT records, each whole (RFC 7208 §3.3). Empty where there are none or nobody answers. */
  texts(name: string): Promise<string[]>;
}

/** For each server; one more than is needed where all answer. Milliseconds. */
const PATIENCE = { timeout: 2_000, tries: 2 };

/** Asks the DNS. @param servers addresses, with or without a port; the system's where none is named. */
export function createDns(servers: readonly string[] = []): Dns {
  const resolver = () => {
    const one = new Resolver(PATIENCE);
    if (servers.length > 0) one.setServers(servers);
    return one;
  };
  return {
    texts: async (name) => {
      const records = await resolver()
        .resolveTxt(name)
        .catch(() => []);
      return records.map((parts) => parts.join(''));
    },
  };
}
