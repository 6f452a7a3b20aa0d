// Looks up DNS TXT records, by which the owner of a domain proves ownership.
import { Resolver } from 'node:dns/promises';

export interface Dns {
  /**
   * Returns the TXT records of a name, each with its strings joined (RFC 7208 §3.3). Empty when there are none or no
   * server answers.
   */
  texts(name: string): Promise<string[]>;
}

/** Timeout of each try, milliseconds. The second try covers a lost packet. */
const LOOKUP_OPTIONS = { timeout: 2_000, tries: 2 };

/** Creates the resolver. @param servers addresses, with or without a port; by default those of the system. */
export function createDns(servers: readonly string[] = []): Dns {
  const resolver = () => {
    const one = new Resolver(LOOKUP_OPTIONS);
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
