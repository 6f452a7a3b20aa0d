// What tells the items of a section of the tenant file apart, in the deploy tool's vocabulary.

/** The members whose values an item is known by. A section that is not named has no items, or items without names. */
export const SECTION_KEYS: Readonly<Record<string, readonly string[]>> = {
  actionModules: ['name'],
  actions: ['name'],
  clientGrants: ['client_id', 'default_for', 'audience', 'subject_type'],
  clients: ['name'],
  connections: ['name'],
  customDomains: ['domain'],
  databases: ['name'],
  emailTemplates: ['template'],
  guardianFactorTemplates: ['name'],
  guardianFactors: ['name'],
  logStreams: ['name'],
  networkACLs: ['description'],
  organizations: ['name'],
  pages: ['name'],
  phoneTemplates: ['type'],
  resourceServers: ['identifier'],
  roles: ['name'],
  rules: ['name'],
  rulesConfigs: ['key'],
  themes: [],
  tokenExchangeProfiles: ['name'],
};

/** Returns what an item is known by; items with equal keys are the same one. */
export const keyOf = (section: string, item: unknown): string =>
  JSON.stringify(
    (SECTION_KEYS[section] ?? []).map(
      (name) => (Object(item) as Readonly<Record<string, unknown>>)[name] ?? null,
    ),
  );

/** Returns the same for people. */
export const nameOf = (section: string, item: unknown): string =>
  (SECTION_KEYS[section] ?? [])
    .flatMap((name) => {
      const value = (Object(item) as Readonly<Record<string, unknown>>)[name];
      return typeof value === 'string' ? [value] : [];
    })
    .join(' ') || keyOf(section, item);
