// The members of a tenant file that are scripts, pages, messages and texts of pages. `${name}` in them is a mark of their own
// (JavaScript, the hosted service's texts), and some may be in files of their own, as the hosted service's deploy tool
// writes them.
// docs/understand/decisions/operating.md#name-in-a-tenant-file-is-a-variable-only-where-it-cannot-be-something-else

/** A member as a path; `*` is any step, and `**` any number of steps at the end. */
type Pattern = readonly string[];

const patterns = (all: readonly string[]): readonly Pattern[] => all.map((one) => one.split('.'));

const FILES = patterns([
  'rules.*.script',
  'hooks.*.script',
  'actions.*.code',
  'actionModules.*.code',
  'databases.*.options.customScripts.*',
  'connections.*.options.email.body',
  'clients.*.custom_login_page',
  'pages.*.html',
  'emailTemplates.*.body',
  'branding.templates.*.body',
  'prompts.partials.**',
]);

const TEXTS = patterns([
  'connections.*.options.scripts.**',
  'connections.*.options.email.**',
  'connections.*.options.template',
  'connections.*.options.requestTemplate',
  'emailTemplates.*.subject',
  'prompts.customText.**',
  'resourceServers.*.authorization_details.*.template',
  'guardianFactorTemplates.**',
  'phoneTemplates.**',
  'selfServiceProfiles.**',
  'forms.**',
  'flows.**',
]);

const fits = (pattern: Pattern, path: readonly string[]): boolean =>
  (pattern.at(-1) === '**' ? path.length >= pattern.length : path.length === pattern.length) &&
  pattern.every((step, at) => step === '**' || step === '*' || step === path[at]);

/** Returns whether a member may be the path of a file with the text. */
export const mayBeFile = (path: readonly string[]): boolean => FILES.some((one) => fits(one, path));

/** Returns whether a member is a script or a text in which `${name}` is a mark of its own. */
export const isText = (path: readonly string[]): boolean =>
  mayBeFile(path) || TEXTS.some((one) => fits(one, path));
