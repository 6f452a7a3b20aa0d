// The look as form fields: each field is a member of the branding (`/branding`) or of the theme (`/branding/themes`),
// named by its path. A theme exists once one of its members is set; members that it lacks fall back to the branding.
import { type FormFault, faultIn } from '../form-fault.ts';
import type { FaultyField } from '../render.ts';

type Section = Readonly<Record<string, unknown>>;

type LookKind = 'color' | 'address' | 'number' | 'switch' | 'choice';

interface LookField {
  /** Path of the member, joined by dots; also the name of the form field. */
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

const BRAND: readonly LookField[] = [
  color('colors.primary'),
  color('colors.page_background'),
  address('logo_url'),
  address('favicon_url'),
  address('font.url'),
];

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

export interface ShownField extends LookField {
  value: string;
  fault?: FormFault;
}

export interface ThemeGroup {
  group: string;
  fields: ShownField[];
  isFaulty: boolean;
}

/** The text of a field without a value. The card has a shadow by default, so that switch is on. */
const defaultText = ({ kind }: LookField) => (kind === 'switch' ? 'true' : '');

/** Returns a value as text; for a gradient its start colour. */
function valueAt(look: Section, field: LookField): string {
  const found = field.path.split('.').reduce<unknown>(memberOf, look);
  if (typeof found === 'object' && found !== null) return textOf(memberOf(found, 'start'));
  return found === undefined || found === null ? defaultText(field) : textOf(found);
}

const textOf = (value: unknown) => (value === undefined || value === null ? '' : String(value));
const memberOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;

const shownField = (look: Section, field: LookField, fault: FormFault | undefined): ShownField => {
  const fieldFault = faultIn(fault, field.path);
  return { ...field, value: valueAt(look, field), ...(fieldFault && { fault: fieldFault }) };
};

/** @param fault the refusal of the branding. */
export function brandFields(brand: Section, fault?: FormFault): ShownField[] {
  return BRAND.map((field) => shownField(brand, field, fault));
}

/** Returns the fields of the theme by group with their values. @param fault the refusal of the theme. */
export function themeGroups(theme: Section, fault?: FormFault): ThemeGroup[] {
  return THEME.map(({ group, fields }) => {
    const all = fields.map((field) => shownField(theme, field, fault));
    return { group, fields: all, isFaulty: all.some((one) => one.fault !== undefined) };
  });
}

export function faultyLook(
  brand: readonly ShownField[],
  theme: readonly ThemeGroup[],
): FaultyField | undefined {
  const isFaulty = ({ fault }: ShownField) => fault !== undefined;
  const brandField = brand.find(isFaulty);
  const found = brandField ?? theme.flatMap(({ fields }) => fields).find(isFaulty);
  if (found === undefined) return undefined;
  const { path } = found;
  const id = `${brandField === undefined ? 'theme' : 'brand'}-${path.replaceAll('.', '-')}`;
  return { id, label: `t:console.branding.field.${path}` };
}

/**
 * Returns a look with the values of a form. A member whose field is unchanged stays as it is.
 * @param entered values by the paths of the fields; fields that are missing are not part of the form.
 */
function withEntered(
  look: Section,
  fields: readonly LookField[],
  entered: Readonly<Record<string, string>>,
): Section {
  return fields.reduce<Section>((rest, field) => {
    const text = field.kind === 'switch' ? switchText(field, entered) : entered[field.path]?.trim();
    if (text === undefined || text === valueAt(look, field)) return rest;
    return withValue(rest, field.path.split('.'), parseField(field, text));
  }, look);
}

/** A switch that is off sends nothing, so the form has a field `switches` that tells of them. */
const switchText = ({ path }: LookField, entered: Readonly<Record<string, string>>) =>
  entered.switches === '1' ? (entered[path] ?? 'false') : undefined;

export const enteredBrand = (brand: Section, entered: Readonly<Record<string, string>>) =>
  withEntered(brand, BRAND, entered);

export const enteredTheme = (theme: Section, entered: Readonly<Record<string, string>>) =>
  withEntered(theme, THEME_FIELDS, entered);

/** @returns undefined when the member is to be left out. */
function parseField({ kind }: LookField, text: string): unknown {
  if (kind === 'switch') return text === 'true';
  if (text === '') return undefined;
  // A text that is not a number is sent unchanged: the API words the error.
  return kind === 'number' && Number.isFinite(Number(text)) ? Number(text) : text;
}

function withValue(section: Section, [name = '', ...path]: string[], value: unknown): Section {
  const { [name]: before, ...others } = section;
  if (path.length === 0) return value === undefined ? others : { ...others, [name]: value };
  return { ...others, [name]: withValue((before ?? {}) as Section, path, value) };
}
