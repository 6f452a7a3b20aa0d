// Which service providers were told of which session, and by what name the user goes there: what logging out
// needs to know.
import type { SamlSessionRecord } from '../store/collections.ts';
import type { Frozen, Store } from '../store/contract.ts';

export type SamlSession = Frozen<SamlSessionRecord>;

export interface SamlSessions {
  /** The session by its SessionIndex, which is the `sid` of the application. */
  get(sessionIndex: string): Promise<SamlSession | undefined>;
  /** Notes a login; a later one in the same session takes the place of the earlier. */
  note(session: SamlSessionRecord): Promise<void>;
  /** The service providers of one browser session. */
  ofSession(sessionUid: string): Promise<SamlSession[]>;
  /** The sessions of a user at one application. */
  ofName(clientId: string, nameId: string): Promise<SamlSession[]>;
  forget(sessionIndex: string): Promise<void>;
}

/** The sessions in a store. Names are compared as they are, capitals and all (Core §8.3). */
export function samlSessions(store: Store): SamlSessions {
  const sessions = store.collection('samlSessions');
  return {
    get: (sessionIndex) => sessions.get(sessionIndex),
    note: (session) => sessions.put(session),
    ofSession: (sessionUid) => sessions.findBy('session', sessionUid),
    ofName: (clientId, nameId) => sessions.findBy('name', `${clientId}\n${nameId}`),
    forget: async (sessionIndex) => {
      await sessions.delete(sessionIndex);
    },
  };
}
