// The groups of a user: groups that list the user as a member, and groups that list such a group.
import type { Client, Entry, SearchOptions } from 'ldapts';
import type { LdapOptions } from '../../../records/ldap.ts';
import { filterFor } from './filter.ts';
import { firstValue } from './profile.ts';

/** How deep nested groups are followed, and how many groups are collected. A cycle ends at a group already found. */
const MAX_NESTING = 10;
const MAX_GROUPS = 1000;
const MEMBER_FILTER = '(|(member={0})(uniqueMember={0}))';

/** Returns the names of the groups of an entry, sorted. @param dn of the entry. @throws the error of the client. */
export async function groupsOf(client: Client, dn: string, options: LdapOptions): Promise<string[]> {
  const { LDAP_SEARCH_GROUPS: template, LDAP_GROUPS_BASE: base = options.LDAP_BASE } = options;
  const { GROUP_PROPERTY: property, GROUPS_TIMEOUT_SECONDS: timeLimit } = options;
  const groupsListing = async (member: string): Promise<Entry[]> => {
    const filter = filterFor(template ?? MEMBER_FILTER, member);
    const search: SearchOptions = { scope: 'sub', filter, attributes: [property], timeLimit, paged: true };
    return (await client.search(base, search)).searchEntries;
  };
  const found = new Map<string, Entry>();
  let members = [dn];
  for (let depth = 0; members.length > 0 && depth < (template === undefined ? MAX_NESTING : 1); depth++) {
    const nextMembers: string[] = [];
    for (const member of members) {
      for (const group of await groupsListing(member)) {
        if (found.has(group.dn) || found.size === MAX_GROUPS) continue;
        found.set(group.dn, group);
        nextMembers.push(group.dn);
      }
    }
    members = nextMembers;
  }
  const names = [...found.values()].flatMap((group) => firstValue(group, property) ?? []);
  return [...new Set(names)].sort();
}
