// A tenant that moves out, in two parts: what the hosted service's deploy tool takes, and what only Gatehouse knows. Joined again
// they are the tenant as it was.
import { SECOND_FACTORS } from '../records/users/second-factors.ts';
import { isJsonObject } from '../runtime/json.ts';
import { type GATEHOUSE_FORM as Form, GATEHOUSE_FORM, type GatehouseFile } from '../tenant/gatehouse-file.ts';
import { isPath } from '../tenant/included-files.ts';
import { nameOf, SECTION_KEYS } from '../tenant/sections.ts';
import { isText, mayBeFile } from '../tenant/text-members.ts';
import { mapStrings, marksIn } from '../tenant/variables.ts';
import { type Members, SECTIONS, type SectionPlace, type Taken } from './leaving-sections.ts';
import { TOOL_SECTIONS } from './tool-names.ts';

export interface LeavingTenant {
  /** What the tool takes, by section. */
  sections: Record<string, unknown>;
  own: GatehouseFile & { gatehouse: typeof Form };
  /** What the tool does not take, a sentence each. */
  refused: string[];
}

/** @param document the tenant file, without users. */
export function leavingTenant(document: Members): LeavingTenant {
  const named = withClientNames(document);
  const sections: Record<string, unknown> = {};
  const members: Record<string, unknown> = {};
  const items: Record<string, unknown[]> = {};
  const refused: string[] = [];
  const theirs = referencesTo(named.clients);
  for (const [section, value] of Object.entries(named)) {
    if (value === undefined) continue;
    const place = Object.hasOwn(SECTIONS, section) ? SECTIONS[section as keyof typeof SECTIONS] : undefined;
    const isTheirs = place === undefined ? TOOL_SECTIONS.has(section) : place !== 'ours';
    if (!isTheirs) members[section] = value;
    else if (Array.isArray(value) && SECTION_KEYS[section] !== undefined) {
      const split = splitItems(section, place as SectionPlace, value as Members[], theirs);
      sections[section] = split.taken;
      if (split.members.length > 0) members[section] = split.members;
      if (split.items.length > 0) items[section] = split.items;
      // One by one: a call takes only so many arguments.
      for (const one of split.refused) refused.push(one);
    } else {
      const { item } = (
        isJsonObject(value) && place !== undefined ? taken(place as SectionPlace, value) : { item: value }
      ) as { item: unknown };
      sections[section] = item;
      const rest = difference(value, item, [section]);
      if (rest !== undefined) members[section] = rest;
    }
  }
  const forTheTool = factorSettings(named.guardianSettings).filter(
    ([section]) => sections[section] === undefined,
  );
  for (const [section, value] of forTheTool) sections[section] = value;
  return {
    sections,
    own: {
      gatehouse: GATEHOUSE_FORM,
      texts: textsOf(named),
      for_the_tool: forTheTool.map(([section]) => section),
      members,
      items,
    },
    refused,
  };
}

function splitItems(
  section: string,
  place: SectionPlace | undefined,
  all: readonly Members[],
  theirs: (reference: unknown) => unknown,
) {
  const split = {
    taken: [] as Members[],
    members: [] as Members[],
    items: [] as Members[],
    refused: [] as string[],
  };
  const names = new Set<unknown>();
  const shared = section === 'clients' ? sharedNames(all) : names;
  const formOf = (item: Members): Taken => {
    const { name } = item;
    const form = place === undefined ? { item } : taken(place, item);
    if ('refused' in form) return form;
    if (shared.has(name)) return { refused: refusalOfShared(section) };
    if (typeof name === 'string' && name in {})
      return { refused: 'the deploy tool stops at this name, which it takes for a part of JavaScript' };
    if (name !== undefined) names.add(name);
    return section === 'clients' ? form : withReferences(form.item, theirs);
  };
  for (const item of all) {
    const form = formOf(item);
    if ('refused' in form) {
      split.items.push(item);
      split.refused.push(`${section} ${nameOf(section, item)}: ${form.refused}`);
      continue;
    }
    const part = form.item;
    split.taken.push(part);
    const rest = difference(item, part, [section, '0']);
    if (rest !== undefined) split.members.push({ ...keyMembers(section, part), ...(rest as object) });
  }
  return split;
}

/**
 * Returns names that several applications have. The tool knows them by their names: it would take one of them for what the hosted
 * service has by that name, and give that the addresses and the secret of the wrong one. So it gets none of them.
 */
const sharedNames = (clients: readonly Members[]): ReadonlySet<unknown> =>
  new Set(
    [...Map.groupBy(clients, ({ name }) => name)].flatMap(([name, all]) => (all.length > 1 ? [name] : [])),
  );

const refusalOfShared = (section: string): string =>
  section === 'clients'
    ? 'another application has this name, and neither the deploy tool nor a tenant file takes a name twice: rename all but one'
    : 'the deploy tool takes each name once';

/** A reference to an application that the tool does not take. */
const GONE = Symbol('gone');

/**
 * Returns a function that gives the name by which the tool knows an application that is referred to, {@link GONE} for one that
 * it does not take.
 */
function referencesTo(clients: unknown): (reference: unknown) => unknown {
  const all = Array.isArray(clients) ? (clients as Members[]) : [];
  const { taken: kept } = splitItems('clients', SECTIONS.clients as SectionPlace, all, (one) => one);
  const names = new Set(kept.map(({ name }) => name));
  const references = new Map<unknown, unknown>();
  for (const { client_id: id, name } of all) {
    const reference = names.has(name) ? name : GONE;
    references.set(id, reference);
    if (!references.has(name)) references.set(name, reference);
  }
  return (one) => references.get(one) ?? one;
}

/** Returns an item that refers to applications as the tool knows them, unless it is for one that it does not know so. */
function withReferences(item: Members, theirs: (reference: unknown) => unknown): Taken {
  const { client_id: id, enabled_clients: enabled, client_grants: grants, options } = item;
  // What an item is known by is the same in both parts.
  if (id !== undefined && theirs(id) !== id)
    return { refused: 'the application’s name is not its alone, or the deploy tool does not take it' };
  const kept = (all: unknown[]) => all.map(theirs).filter((one) => one !== GONE);
  const login = isJsonObject(options) ? options.idpinitiated : undefined;
  const application = isJsonObject(login) ? theirs(login.client_id) : undefined;
  const referring = {
    ...item,
    ...(Array.isArray(enabled) && { enabled_clients: kept(enabled) }),
    ...(Array.isArray(grants) && {
      client_grants: (grants as Members[]).flatMap((one) =>
        theirs(one.client_id) === GONE ? [] : [{ ...one, client_id: theirs(one.client_id) }],
      ),
    }),
    ...(isJsonObject(login) &&
      application !== undefined && {
        options: {
          ...(options as object),
          idpinitiated: { ...login, client_id: application === GONE ? null : application },
        },
      }),
  };
  return { item: referring };
}

/** Returns the members that an item is known by, as in the tool's part, which the own part is joined with. */
const keyMembers = (section: string, item: Members): Members =>
  Object.fromEntries(
    (SECTION_KEYS[section] ?? []).flatMap((name) => (item[name] === undefined ? [] : [[name, item[name]]])),
  );

function taken({ ours = [], form }: SectionPlace, item: Members): Taken {
  const theirs = ours.reduce<unknown>((value, path) => without(value, path.split('.')), item) as Members;
  return form?.(theirs, item) ?? { item: theirs };
}

/** Returns a value without a member. */
function without(value: unknown, [step = '', ...rest]: readonly string[]): unknown {
  if (Array.isArray(value)) return step === '*' ? value.map((one) => without(one, rest)) : value;
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]): [string, unknown][] => {
      if (step !== '*' && name !== step) return [[name, member]];
      return rest.length === 0 ? [] : [[name, without(member, rest)]];
    }),
  );
}

/**
 * Returns what has to be added to the tool's part to make it the whole again; undefined if nothing has. `null` stands for a member
 * that the whole does not have: the tool wants it, and a tenant file reads `null` as not set.
 */
function difference(whole: unknown, theirs: unknown, path: readonly string[]): unknown {
  if (isJsonObject(whole) && isJsonObject(theirs)) {
    const names = [...new Set([...Object.keys(whole), ...Object.keys(theirs)])];
    const parts = names.flatMap((name): [string, unknown][] => {
      const at = [...path, name];
      if (!Object.hasOwn(whole, name)) return theirs[name] === undefined ? [] : [[name, null]];
      if (!Object.hasOwn(theirs, name)) return whole[name] === undefined ? [] : [[name, whole[name]]];
      const rest = difference(whole[name], theirs[name], at);
      return rest === undefined ? [] : [[name, rest]];
    });
    return parts.length === 0 ? undefined : Object.fromEntries(parts);
  }
  if (typeof whole === 'string' && isMistakenPath(whole, path)) return whole;
  return JSON.stringify(whole) === JSON.stringify(theirs) ? undefined : whole;
}

/**
 * Returns whether Gatehouse would take a text for the path of a file, where the tool takes it as it is. The text stands in the own
 * file then, in which nothing is a path.
 */
const isMistakenPath = (text: string, path: readonly string[]): boolean =>
  ['connections', 'prompts'].includes(path[0] ?? '') && mayBeFile(path) && isPath(text);

/** Returns the names of all that looks like a variable; it is a text, because a stored tenant has no variables. */
function textsOf(document: unknown): string[] {
  const names = new Set<string>();
  mapStrings(document, [], (text, path) => {
    for (const name of marksIn(text, { braced: !isText(path) })) names.add(name);
    return text;
  });
  return [...names].sort();
}

/** Returns the settings of second factors in the tool's sections. */
function factorSettings(settings: unknown): [string, unknown][] {
  const part = (name: string) =>
    isJsonObject(settings) && isJsonObject(settings[name]) ? settings[name] : undefined;
  const types = part('phone/message-types');
  const selected = part('phone/selected-provider');
  const [twilio, sns] = [part('sms/providers/twilio'), part('push-notification/providers/sns')];
  return [
    ...(types === undefined ? [] : [['guardianPhoneFactorMessageTypes', types] as [string, unknown]]),
    ...(selected === undefined
      ? []
      : [['guardianPhoneFactorSelectedProvider', selected] as [string, unknown]]),
    ...(twilio === undefined && sns === undefined
      ? []
      : [
          [
            'guardianFactorProviders',
            [
              ...(twilio === undefined
                ? []
                : [{ name: SECOND_FACTORS.sms.name, provider: 'twilio', ...twilio }]),
              ...(sns === undefined ? [] : [{ name: SECOND_FACTORS.push.name, provider: 'sns', ...sns }]),
            ],
          ] as [string, unknown],
        ]),
  ];
}

/**
 * Returns a tenant that names its applications where it refers to them, as the tool does: what it makes gets another id there.
 * One whose name is not its alone stays named by its id.
 */
function withClientNames(document: Members): Members {
  const { clients, databases, connections, clientGrants, organizations, tenant, guardianPolicies } =
    document as Record<string, Members[] | undefined>;
  const all = clients ?? [];
  const ids = new Set(all.map(({ client_id: id }) => id));
  const shared = sharedNames(all);
  const names = new Map(
    all
      .filter(({ name }) => typeof name === 'string' && !shared.has(name) && !ids.has(name))
      .map(({ client_id: id, name }) => [id, name]),
  );
  const nameOf = (id: unknown) => names.get(id) ?? id;
  const enabled = (connection: Members): Members => ({
    ...connection,
    ...(Array.isArray(connection.enabled_clients) && {
      enabled_clients: connection.enabled_clients.map(nameOf),
    }),
    ...(isJsonObject(connection.options) && { options: withLogin(connection.options, nameOf) }),
  });
  const byName = (entry: unknown) =>
    isJsonObject(entry) && entry.client_id !== undefined
      ? { ...entry, client_id: nameOf(entry.client_id) }
      : entry;
  const page = isJsonObject(tenant) ? tenant.account_page : undefined;
  return {
    ...document,
    ...(isJsonObject(page) && { tenant: { ...(tenant as object), account_page: byName(page) } }),
    ...(databases && { databases: databases.map(enabled) }),
    ...(connections && { connections: connections.map(enabled) }),
    ...(clientGrants && { clientGrants: clientGrants.map(byName) }),
    ...(organizations && {
      organizations: organizations.map((one) => ({
        ...one,
        ...(Array.isArray(one.client_grants) && { client_grants: one.client_grants.map(byName) }),
      })),
    }),
    ...(Array.isArray(guardianPolicies) && { guardianPolicies: { policies: guardianPolicies } }),
  };
}

/** Returns options whose login that the provider begins names its application. */
function withLogin(options: Members, nameOf: (id: unknown) => unknown): Members {
  const { idpinitiated } = options;
  if (!isJsonObject(idpinitiated) || idpinitiated.client_id === undefined) return options;
  return { ...options, idpinitiated: { ...idpinitiated, client_id: nameOf(idpinitiated.client_id) } };
}
