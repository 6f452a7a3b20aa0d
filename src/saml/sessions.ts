// Which service providers were told of which session, and by what name the user goes there: what logging out
// needs to know.

import type { Frozen } from '../records/record.ts';
import type { SamlSessionRecord } from '../records/saml-sessions.ts';
import { type Store, UniqueKeyError } from '../store/contract.ts';

export type SamlSession = Frozen<SamlSessionRecord>;

export interface SamlSessions {
  /** The part that an application has in a browser session. */
  find(clientId: string, sessionUid: string): Promise<SamlSession | undefined>;
  /**
   * Notes a login; a later one in the same session takes the place of the earlier, under its SessionIndex.
   * @returns false when another login of the application in the session was noted meanwhile, under another one.
   */
  note(session: SamlSessionRecord): Promise<boolean>;
  /** The sessions of a user at one application. */
  ofName(clientId: string, nameId: string): Promise<SamlSession[]>;
  /** What all service providers have in a browser session. */
  ofSession(sessionUid: string): Promise<SamlSession[]>;
  /** Ends what all service providers had in a browser session. @returns what they had. */
  takeAll(sessionUid: string): Promise<SamlSession[]>;
}

/** The sessions in a store. Names are compared as they are, capitals and all (Core §8.3). */
export function samlSessions(store: Store): SamlSessions {
  const sessions = store.collection('samlSessions');
  return {
    find: async (clientId, sessionUid) => (await sessions.findBy('party', `${clientId}\n${sessionUid}`))[0],
    note: async (session) => {
      try {
        await sessions.put(session);
        return true;
      } catch (thrown) {
        if (thrown instanceof UniqueKeyError) return false;
        throw thrown;
      }
    },
    ofName: (clientId, nameId) => sessions.findBy('name', `${clientId}\n${nameId}`),
    ofSession: (sessionUid) => sessions.findBy('session', sessionUid),
    takeAll: async (sessionUid) => {
      const found = await sessions.findBy('session', sessionUid);
      await sessions.deleteBy('session', sessionUid);
      return found;
    },
  };
}
