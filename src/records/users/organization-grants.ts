// The client grants of an organization as tenant files name them. The deploy tool writes the application alone, once for each of
// its grants that the organization has.
import { z } from 'zod';

/** In the store, the id of a client grant; in a file, the application, and in ours its API, too. */
export const organizationGrantSchema = z.union([
  z.string().min(1),
  z.looseObject({ client_id: z.string().min(1), audience: z.string().optional() }),
]);

type Entry = z.output<typeof organizationGrantSchema>;

/** A client grant, of which a file may lack the id. */
interface Grant {
  readonly id?: string | undefined;
  readonly client_id?: string | undefined;
  readonly audience: string;
  readonly organization_usage?: string | null | undefined;
}

/** An entry of which it is not known which client grant it means. */
interface Unclear {
  index: number;
  says: string;
}

// docs/understand/decisions/organizations.md#an-organization-gets-no-client-grant-that-its-file-does-not-say
/**
 * Returns the client grants that a file says an organization has.
 * @param named the grants with the ids of their applications. @param clientId returns the id of an application that is named.
 */
export function grantsOfEntries<T extends Grant>(
  entries: readonly Entry[],
  grants: readonly T[],
  clientId: (idOrName: string) => string,
): { grants: T[]; unclear: Unclear[] } {
  const found = new Set<T>();
  const unclear: Unclear[] = [];
  const ofApplication = (one: Entry) => (typeof one === 'string' ? undefined : clientId(one.client_id));
  for (const [index, entry] of entries.entries()) {
    const own = grants.filter(({ client_id: id }) => id !== undefined && id === ofApplication(entry));
    const meant =
      typeof entry === 'string'
        ? grants.filter(({ id }) => id === entry)
        : entry.audience === undefined
          ? usable(own)
          : own.filter(({ audience }) => audience === entry.audience);
    const said = entries.filter(
      (one) =>
        typeof one !== 'string' && one.audience === undefined && ofApplication(one) === ofApplication(entry),
    );
    const isNamed = typeof entry === 'string' || entry.audience !== undefined;
    if (meant.length === 0) unclear.push({ index, says: `${nameOf(entry)} has no such client grant` });
    else if (isNamed || meant.length <= said.length) for (const one of meant) found.add(one);
    else
      unclear.push({
        index,
        says: `${nameOf(entry)} has several client grants: add the audience of the one that is the organization's`,
      });
  }
  return { grants: [...found], unclear };
}

const nameOf = (entry: Entry) => (typeof entry === 'string' ? entry : entry.client_id);

/** Returns those that organizations may have, unless there are none. */
function usable<T extends Grant>(grants: readonly T[]): readonly T[] {
  const allowing = grants.filter(({ organization_usage: usage }) => usage === 'allow' || usage === 'require');
  return allowing.length === 0 ? grants : allowing;
}
