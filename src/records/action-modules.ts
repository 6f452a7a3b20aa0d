// Modules of actions: code that several of them share, each in the version that an action names.
import type { DocumentRecord } from './documents.ts';
import type { Frozen } from './record.ts';

/** The kind of their documents. */
export const ACTION_MODULE = 'action-module';

type Document = Pick<Frozen<DocumentRecord>, 'id' | 'body'>;

/** A module as an action finds it. */
interface RunnableModule {
  name: string;
  code: string;
  /** Names of npm packages that it lists. */
  dependencies: readonly string[];
  /** By name. */
  secrets: Readonly<Record<string, string>>;
}

/** What an action says of a module: by the id or the name, and by the id or the number of the version. */
export interface ModuleReference {
  module_id?: string;
  module_name?: string;
  module_version_id?: string;
  module_version_number?: number;
}

/** One that was published; what is published stays as it is. */
export interface ModuleVersion {
  id: string;
  version_number: number;
  code: string;
  dependencies: readonly { name: string }[];
  /** With their values. */
  secrets: readonly { name: string; value?: string }[];
  /** ISO 8601. */
  created_at: string;
}

/** The versions of a module, oldest first. One of the tenant file that says so is published as it stands. */
export function moduleVersionsOf({ body }: Document): readonly ModuleVersion[] {
  const {
    versions = [],
    all_changes_published: isPublished,
    code = '',
    dependencies = [],
    secrets = [],
  } = body;
  const known = versions as readonly ModuleVersion[];
  if (known.length > 0 || isPublished !== true) return known;
  return [
    { id: 'published', version_number: 1, code, dependencies, secrets, created_at: '' } as ModuleVersion,
  ];
}

/** What a reference is of. @returns undefined where there is no such module, or no such version of it. */
export function moduleMeant<D extends Document>(
  modules: readonly D[],
  {
    module_id: id,
    module_name: name,
    module_version_id: version,
    module_version_number: number,
  }: ModuleReference,
): { module: D; version: ModuleVersion } | undefined {
  const module = modules.find((one) => (id === undefined ? one.body.name === name : one.id === id));
  const versions = module === undefined ? [] : moduleVersionsOf(module);
  const found =
    version === undefined && number === undefined
      ? versions.at(-1)
      : versions.find((one) => (version === undefined ? one.version_number === number : one.id === version));
  return module && found && { module, version: found };
}

/** The modules of an action, as it runs. @param references as the action was deployed with. @param modules their documents. */
export function runnableModules(
  references: unknown,
  modules: readonly Document[],
): { name: string; found: RunnableModule | undefined }[] {
  return ((references ?? []) as readonly ModuleReference[]).map((reference) => {
    const meant = moduleMeant(modules, reference);
    const name = String(meant?.module.body.name ?? reference.module_name ?? reference.module_id);
    if (meant === undefined) return { name, found: undefined };
    const { code, dependencies, secrets } = meant.version;
    const found = {
      name,
      code,
      dependencies: dependencies.map((one) => String(one.name)),
      secrets: Object.fromEntries(secrets.map((one) => [one.name, one.value ?? ''])),
    };
    return { name, found };
  });
}
