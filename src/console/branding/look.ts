// The look as a form has it: the brand (`/branding`) and the theme (`/branding/themes`), each a field by its path. A theme is
// there once something of it is set; what it leaves out is the brand's.
import { type FormFault, faultIn } from '../form-fault.ts';
import type { FaultyField } from '../render.ts';

type Section = Readonly<Record<string, unknown>>;

/** How a value of the look is typed. */
type LookKind = 'color' | 'address' | 'number' | 'switch' | 'choice';

interface LookField {
  /** Members from the top, joined by dots; what the form calls the field. */
  path: string;
  kind: LookKind;
  choices?: readonly string[];
  least?: number;
  most?: number;
}

const color = (path: string): LookField => ({ path, kind: 'color' });
const address = (path: string): LookField => ({ path, kind: 'address' });
const number = (path: string, least: number, most: number): LookField => ({
  path,
  kind: 'number',
  least,
  most,
});
const choice = (path: string, ...choices: string[]): LookField => ({ path, kind: 'choice', choices });
const size = (name: string) => number(`fonts.${name}.size`, 75, 150);

/** Of the brand. */
const BRAND: readonly LookField[] = [
  color('colors.primary'),
  color('colors.page_background'),
  address('logo_url'),
  address('favicon_url'),
  address('font.url'),
];

/** Of the theme, by group. */
const THEME: readonly { group: string; fields: readonly LookField[] }[] = [
  {
    group: 'colors',
    fields: [
      ...['primary_button', 'primary_button_label', 'secondary_button_border', 'secondary_button_label'],
      ...[
        'links_focused_components',
        'header',
        'body_text',
        'input_labels_placeholders',
        'input_filled_text',
      ],
      ...['input_border', 'input_background', 'widget_background', 'widget_border', 'error', 'success'],
    ].map((name) => color(`colors.${name}`)),
  },
  {
    group: 'borders',
    fields: [
      choice('borders.buttons_style', 'pill', 'rounded', 'sharp'),
      number('borders.button_border_radius', 1, 10),
      number('borders.button_border_weight', 0, 10),
      choice('borders.inputs_style', 'pill', 'rounded', 'sharp'),
      number('borders.input_border_radius', 0, 10),
      number('borders.input_border_weight', 0, 3),
      number('borders.widget_corner_radius', 0, 50),
      number('borders.widget_border_weight', 0, 10),
      { path: 'borders.show_widget_shadow', kind: 'switch' },
    ],
  },
  {
    group: 'fonts',
    fields: [
      address('fonts.font_url'),
      number('fonts.reference_text_size', 12, 24),
      ...['title', 'subtitle', 'body_text', 'buttons_text', 'input_labels'].map(size),
    ],
  },
  {
    group: 'widget',
    fields: [
      address('widget.logo_url'),
      number('widget.logo_height', 1, 100),
      choice('widget.logo_position', 'center', 'left', 'right', 'none'),
      choice('widget.header_text_alignment', 'center', 'left', 'right'),
      choice('page_background.page_layout', 'center', 'left', 'right'),
      color('page_background.background_color'),
      address('page_background.background_image_url'),
    ],
  },
];

const THEME_FIELDS = THEME.flatMap(({ fields }) => fields);

/** A field with what the look has. */
interface ShownField extends LookField {
  value: string;
  fault?: FormFault;
}

interface ThemeGroup {
  group: string;
  fields: ShownField[];
  /** Whether something is wrong with one of them. */
  isFaulty: boolean;
}

/** What is typed where nothing is: shadows are there. */
const usual = ({ kind }: LookField) => (kind === 'switch' ? 'true' : '');

/** A value of a look as text; a gradient is the colour that it begins with. */
function valueAt(look: Section, field: LookField): string {
  const found = field.path.split('.').reduce<unknown>(memberOf, look);
  if (typeof found === 'object' && found !== null) return textOf(memberOf(found, 'start'));
  return found === undefined || found === null ? usual(field) : textOf(found);
}

const textOf = (value: unknown) => (value === undefined || value === null ? '' : String(value));
const memberOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;

const shown = (look: Section, field: LookField, fault: FormFault | undefined): ShownField => {
  const own = faultIn(fault, field.path);
  return { ...field, value: valueAt(look, field), ...(own && { fault: own }) };
};

/** The fields of a brand, with their values. @param fault what was refused of it. */
export function brandFields(brand: Section, fault?: FormFault): ShownField[] {
  return BRAND.map((field) => shown(brand, field, fault));
}

/** The fields of a theme by group, with their values. @param fault what was refused of it. */
export function themeGroups(theme: Section, fault?: FormFault): ThemeGroup[] {
  return THEME.map(({ group, fields }) => {
    const all = fields.map((field) => shown(theme, field, fault));
    return { group, fields: all, isFaulty: all.some((one) => one.fault !== undefined) };
  });
}

/** The first field with which something is wrong. */
export function faultyLook(
  brand: readonly ShownField[],
  theme: readonly ThemeGroup[],
): FaultyField | undefined {
  const isFaulty = ({ fault }: ShownField) => fault !== undefined;
  const ofBrand = brand.find(isFaulty);
  const found = ofBrand ?? theme.flatMap(({ fields }) => fields).find(isFaulty);
  if (found === undefined) return undefined;
  const { path } = found;
  const id = `${ofBrand === undefined ? 'theme' : 'brand'}-${path.replaceAll('.', '-')}`;
  return { id, label: `t:console.branding.field.${path}` };
}

/**
 * A look with what a form says. What is as it is shown is not touched.
 * @param typed by the paths of the fields; one that is not there is not of the form.
 */
function withTyped(
  look: Section,
  fields: readonly LookField[],
  typed: Readonly<Record<string, string>>,
): Section {
  return fields.reduce<Section>((rest, field) => {
    const text = field.kind === 'switch' ? switched(field, typed) : typed[field.path]?.trim();
    if (text === undefined || text === valueAt(look, field)) return rest;
    return withValue(rest, field.path.split('.'), read(field, text));
  }, look);
}

/** A switch that is off sends nothing: the form says that it has switches. */
const switched = ({ path }: LookField, typed: Readonly<Record<string, string>>) =>
  typed.switches === '1' ? (typed[path] ?? 'false') : undefined;

/** The brand of a form. */
export const typedBrand = (brand: Section, typed: Readonly<Record<string, string>>) =>
  withTyped(brand, BRAND, typed);

/** The theme of a form. */
export const typedTheme = (theme: Section, typed: Readonly<Record<string, string>>) =>
  withTyped(theme, THEME_FIELDS, typed);

/** @returns undefined for what is to be as usual. */
function read({ kind }: LookField, text: string): unknown {
  if (kind === 'switch') return text === 'true';
  if (text === '') return undefined;
  // What is no number is sent as it is: the API says what is wrong with it.
  return kind === 'number' && Number.isFinite(Number(text)) ? Number(text) : text;
}

function withValue(section: Section, [name = '', ...path]: string[], value: unknown): Section {
  const { [name]: before, ...others } = section;
  if (path.length === 0) return value === undefined ? others : { ...others, [name]: value };
  return { ...others, [name]: withValue((before ?? {}) as Section, path, value) };
}
