// The service providers that take part in each session, with the NameID that they know the user by. Logout needs
// them.

import type { Frozen } from '../../records/base/record.ts';
import type { SamlSessionRecord } from '../../records/state/saml-sessions.ts';
import { type Store, UniqueKeyError } from '../../store/contract.ts';

export type SamlSession = Frozen<SamlSessionRecord>;

interface SamlSessions {
  find(clientId: string, sessionUid: string): Promise<SamlSession | undefined>;
  /**
   * Stores a login. A later one in the same session replaces it under the same SessionIndex.
   * @returns false when a concurrent login of the application in this session was stored under another
   *   SessionIndex.
   */
  save(session: SamlSessionRecord): Promise<boolean>;
  findByName(clientId: string, nameId: string): Promise<SamlSession[]>;
  findBySession(sessionUid: string): Promise<SamlSession[]>;
  /** Removes all participants of a browser session. @returns them. */
  takeAll(sessionUid: string): Promise<SamlSession[]>;
}

/** Returns the sessions of a store. NameIDs are compared case-sensitively (Core §8.3). */
export function samlSessions(store: Store): SamlSessions {
  const sessions = store.collection('samlSessions');
  return {
    find: async (clientId, sessionUid) => (await sessions.findBy('party', `${clientId}\n${sessionUid}`))[0],
    save: async (session) => {
      try {
        await sessions.put(session);
        return true;
      } catch (thrown) {
        if (thrown instanceof UniqueKeyError) return false;
        throw thrown;
      }
    },
    findByName: (clientId, nameId) => sessions.findBy('name', `${clientId}\n${nameId}`),
    findBySession: (sessionUid) => sessions.findBy('session', sessionUid),
    takeAll: async (sessionUid) => {
      const found = await sessions.findBy('session', sessionUid);
      await sessions.deleteBy('session', sessionUid);
      return found;
    },
  };
}
