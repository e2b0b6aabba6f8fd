//! The map of regions.

use super::format::{count, milliseconds, rate};
use super::state;
use super::widgets::{buffer_color, region_color, server_color};
use crate::view::{ColumnKey, RegionKey, View};
use crate::widgets::swatch;
use bevy::prelude::{MessageReader, Res, ResMut, Resource};
use bevy_egui::egui::{
    Align2, Color32, ColorImage, Context, Mesh, Painter, Pos2, Rect, RichText, Sense, Stroke, StrokeKind, TextStyle,
    TextureHandle, TextureOptions, Ui, Vec2, pos2, vec2,
};
use bevy_terrane::space::{ColumnPos, DimensionId, SectionPos};
use bevy_terrane::storage::servers::{PLOT_SIZE, Plot};
use bevy_terrane::view::{ColumnChange, ColumnChanged, PublishedColumns, RegionStatistics, WorldStatistics};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// The distance between the map's edge and the outermost sections, in points.
const MARGIN: f32 = 10.0;
/// The maximum side length of a section, in points. Otherwise a lone region would fill the map.
const LARGEST_SECTION: f32 = 26.0;
/// Sections of at least this size are drawn with gaps.
const SEPARATE_SECTIONS: f32 = 4.0;
/// The number of viewers with a circle, at most; the others are square dots only.
const MAX_CIRCLES: usize = 200;

/// The mapping of sections to the screen: x to the right, z down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MapTransform {
    origin: SectionPos,
    corner: Pos2,
    /// Points per section.
    scale: f32,
}

impl MapTransform {
    /// The largest transform that shows all of these sections in `rect`, centered.
    pub fn fit(sections: impl IntoIterator<Item = SectionPos>, rect: Rect) -> Option<Self> {
        let (low, high) = RegionStatistics::bounds_of(sections)?;
        let inner = rect.shrink(MARGIN.min(rect.width().min(rect.height()) / 4.0));
        let extent = vec2(distance(low.x, high.x) as f32 + 1.0, distance(low.z, high.z) as f32 + 1.0);
        let scale = (inner.width() / extent.x).min(inner.height() / extent.y).clamp(f32::MIN_POSITIVE, LARGEST_SECTION);
        Some(Self { origin: low, corner: inner.center() - extent * scale / 2.0, scale })
    }

    /// The place of a point, counted in sections from the corner of `section`.
    fn point(self, section: SectionPos, offset: Vec2) -> Pos2 {
        let x = distance(self.origin.x, section.x) + f64::from(offset.x);
        let z = distance(self.origin.z, section.z) + f64::from(offset.y);
        let scale = f64::from(self.scale);
        self.corner + vec2((x * scale) as f32, (z * scale) as f32)
    }

    /// The square of a section.
    pub fn section(self, section: SectionPos) -> Rect {
        Rect::from_min_size(self.point(section, Vec2::ZERO), Vec2::splat(self.scale))
    }

    /// The middle of a column.
    pub fn column(self, column: ColumnPos, section_shift: u32) -> Pos2 {
        let section = column.section(section_shift);
        let columns = f64::from(section_shift).exp2();
        let within = |column: i64, section: i64| ((column - (section << section_shift)) as f64 + 0.5) / columns;
        self.point(section, vec2(within(column.x, section.x) as f32, within(column.z, section.z) as f32))
    }

    /// The column at a place on the screen.
    pub fn column_at(self, place: Pos2, section_shift: u32) -> ColumnPos {
        let (section, side) = (self.section_at(place), f64::from(section_shift).exp2());
        let within = (place - self.section(section).min) / self.scale;
        let along = |section: i64, within: f32| {
            // A section at the edge of the world may lie beyond it in part.
            let within = (f64::from(within.clamp(0.0, 1.0)) * side).min(side - 1.0) as i64;
            section.saturating_mul(1 << section_shift).saturating_add(within)
        };
        ColumnPos::new(along(section.x, within.x), along(section.z, within.y))
    }

    /// The section at a place on the screen.
    pub fn section_at(self, place: Pos2) -> SectionPos {
        let offset = (place - self.corner) / self.scale;
        let along = |origin: i64, offset: f32| origin.saturating_add(offset.floor() as i64);
        SectionPos::new(along(self.origin.x, offset.x), along(self.origin.z, offset.y))
    }
}

fn distance(from: i64, to: i64) -> f64 {
    (i128::from(to) - i128::from(from)) as f64
}

/// The map's state, from the newest statistics.
#[derive(Default)]
pub(super) struct Map {
    /// The dimension to show, if there are several.
    dimension: DimensionId,
    /// The selected region whose dimension was shown last for that reason.
    followed: Option<RegionKey>,
    /// Rows of equal sections along z, for all dimensions. Later ones cover earlier ones.
    runs: Vec<Run>,
    /// Counts the changes of the runs.
    version: u64,
    /// The squares that are shown. As a mesh they would be copied in each frame.
    squares: Option<Squares>,
    /// Squares that were made in this frame. The graphics card has them in the next one.
    next_squares: Option<Squares>,
    /// The lowest and the highest section of the shown dimension, until something changes.
    bounds: Option<(DimensionId, Option<[SectionPos; 2]>)>,
    made_of: Option<MadeOf>,
}

/// The squares of all sections of a dimension, as an image.
struct Squares {
    /// The key of the image: the version of the runs, the dimension, the transform's origin and scale, and the size in pixels.
    of: (u64, DimensionId, SectionPos, f32, [usize; 2]),
    texture: TextureHandle,
}

/// The lists from which the runs were made. They are shared until they change, and kept here so that no other list gets their place in
/// memory.
struct MadeOf {
    occupied: usize,
    plots: Vec<Arc<[Plot]>>,
    sections: Vec<(RegionKey, Arc<[SectionPos]>)>,
}

impl MadeOf {
    fn new(statistics: &WorldStatistics, occupied: &Occupied) -> Self {
        let of_region = |region: &RegionStatistics| ((region.dimension, region.region), region.sections.clone());
        Self {
            occupied: occupied.version,
            plots: statistics.servers.iter().map(|server| server.plots.clone()).collect(),
            sections: statistics.regions.iter().map(of_region).collect(),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        let same_plots = self.plots.len() == other.plots.len()
            && self.plots.iter().zip(&other.plots).all(|(one, other)| Arc::ptr_eq(one, other));
        let same_sections = self.sections.len() == other.sections.len()
            && self
                .sections
                .iter()
                .zip(&other.sections)
                .all(|(one, other)| one.0 == other.0 && Arc::ptr_eq(&one.1, &other.1));
        self.occupied == other.occupied && same_plots && same_sections
    }
}

/// The sections with published columns, kept up to date while the overlay is hidden too.
#[derive(Resource, Default)]
pub(super) struct Occupied {
    /// Raised with each change of the sections.
    version: usize,
    section_shift: u32,
    sections: FxHashSet<(DimensionId, SectionPos)>,
}

/// Keeps [`Occupied`] up to date.
pub(super) fn note(
    mut occupied: ResMut<Occupied>,
    mut changed: MessageReader<ColumnChanged>,
    statistics: Res<WorldStatistics>,
    published: Res<PublishedColumns>,
) {
    if changed.is_empty() && occupied.section_shift == statistics.section_shift {
        return;
    }
    let Occupied { version, section_shift, sections } = &mut *occupied;
    let before = sections.len();
    let mut is_other = false;
    let shift = statistics.section_shift;
    if *section_shift != shift {
        // The first statistics tell the size of a section.
        *section_shift = shift;
        *sections = published.iter().map(|(dimension, column)| (dimension, column.pos().section(shift))).collect();
        changed.clear();
        is_other = true;
    }
    let mut left = FxHashSet::default();
    for ColumnChanged { dimension, column, change } in changed.read() {
        let section = (*dimension, column.section(shift));
        match change {
            ColumnChange::Loaded => drop(sections.insert(section)),
            ColumnChange::Unloaded => drop(left.insert(section)),
            _ => {}
        }
    }
    for (dimension, section) in left {
        if !section.columns(shift).any(|column| published.column(dimension, column).is_some()) {
            is_other |= sections.remove(&(dimension, section));
        }
    }
    if is_other || sections.len() != before {
        *version += 1;
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Run {
    dimension: DimensionId,
    first: SectionPos,
    length: i64,
    color: Color32,
}

impl Map {
    /// Applies new statistics; `occupied` are the sections with columns.
    pub fn update(&mut self, statistics: &WorldStatistics, occupied: &Occupied) {
        let made_of = MadeOf::new(statistics, occupied);
        if self.made_of.as_ref().is_some_and(|before| before.is_same(&made_of)) {
            return;
        }
        self.made_of = Some(made_of);
        self.runs.clear();
        self.version += 1;
        self.bounds = None;
        for server in &statistics.servers {
            let color = server_color(server.incarnation);
            for (dimension, plot) in server.plots.iter() {
                let [first, last] = [0, PLOT_SIZE as i64 - 1].map(|within| {
                    let [x, z] =
                        [plot.x, plot.z].map(|along| along.saturating_mul(PLOT_SIZE as i64).saturating_add(within));
                    ColumnPos::new(x, z).section(statistics.section_shift)
                });
                self.runs.extend((first.x..=last.x).map(|x| Run {
                    dimension: *dimension,
                    first: SectionPos::new(x, first.z),
                    length: last.z - first.z + 1,
                    color,
                }));
            }
        }
        for region in &statistics.regions {
            let dimension = region.dimension;
            for section in region.sections.iter() {
                let has_columns = occupied.sections.contains(&(dimension, *section));
                let color = if has_columns { region_color(region.region) } else { buffer_color(region.region) };
                match self.runs.last_mut() {
                    Some(run)
                        if (run.dimension, run.color, run.first.x) == (dimension, color, section.x)
                            && run.first.z.checked_add(run.length) == Some(section.z) =>
                    {
                        run.length += 1;
                    }
                    _ => self.runs.push(Run { dimension, first: *section, length: 1, color }),
                }
            }
        }
    }

    /// Shows the map. A click selects a region and a column.
    pub fn show(
        &mut self,
        ui: &mut Ui,
        view: &View,
        selected: &mut Option<RegionKey>,
        selected_column: &mut Option<ColumnKey>,
    ) {
        let available = ui.available_size();
        self.choose_dimension(ui, view, *selected);
        let size = vec2(available.x, (available.y * 0.5).clamp(120.0, 420.0));
        let (response, painter) = ui.allocate_painter(size, Sense::click());
        let visuals = ui.visuals();
        painter.rect_filled(response.rect, 4.0, visuals.extreme_bg_color);
        let Some(transform) = MapTransform::fit(self.bounds().into_iter().flatten(), response.rect) else {
            let center = response.rect.center();
            let font = TextStyle::Body.resolve(ui.style());
            painter.text(center, Align2::CENTER_CENTER, "no region", font, visuals.weak_text_color());
            return;
        };
        let statistics = &view.statistics;
        self.paint_squares(&painter, response.rect, transform);
        self.paint_viewers(&painter, transform, statistics, visuals.strong_text_color());
        let outlined = selected.filter(|(dimension, _)| *dimension == self.dimension);
        if let Some(region) = outlined.and_then(|(dimension, region)| statistics.region(dimension, region)) {
            paint_outline(&painter, transform, region);
        }

        let hovered = response.hover_pos().map(|place| transform.section_at(place));
        let region = hovered.and_then(|section| {
            let mut here = statistics.regions.iter().filter(|region| region.dimension == self.dimension);
            here.find(|region| region.contains(section)).zip(Some(section))
        });
        if response.clicked() {
            *selected = region.map(|(region, _)| (region.dimension, region.region));
            let column = response.hover_pos().map(|place| transform.column_at(place, statistics.section_shift));
            *selected_column = column.filter(|_| region.is_some()).map(|column| (self.dimension, column));
        }
        if let Some((region, section)) = region {
            let stroke = Stroke::new(1.0, Color32::WHITE);
            painter.rect_stroke(transform.section(section), 0.0, stroke, StrokeKind::Outside);
            response.on_hover_ui_at_pointer(|ui| hint(ui, region, section));
        }
    }

    /// Chooses the dimension: the selected one, or that of a region that was selected later, as long as it is open.
    fn choose_dimension(&mut self, ui: &mut Ui, view: &View, selected: Option<RegionKey>) {
        if let Some((dimension, _)) = selected.filter(|_| self.followed != selected) {
            self.dimension = dimension;
        }
        self.followed = selected;
        let open = &view.statistics.dimensions;
        if let Some(first) = open.first()
            && open.iter().all(|open| open.dimension != self.dimension)
        {
            self.dimension = first.dimension;
        }
        if view.has_dimensions() {
            ui.horizontal_wrapped(|ui| {
                for dimension in open.iter().map(|open| open.dimension) {
                    ui.selectable_value(&mut self.dimension, dimension, view.name(dimension));
                }
            });
        }
    }

    /// The lowest and the highest section of the shown dimension.
    fn bounds(&mut self) -> Option<[SectionPos; 2]> {
        if let Some((dimension, bounds)) = self.bounds
            && dimension == self.dimension
        {
            return bounds;
        }
        let bounds = RegionStatistics::bounds_of(self.runs().flat_map(Run::ends)).map(|(low, high)| [low, high]);
        self.bounds = Some((self.dimension, bounds));
        bounds
    }

    /// The runs of the shown dimension.
    fn runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.dimension == self.dimension)
    }

    /// Paints the squares of all sections, as they were before the last frame at the latest.
    fn paint_squares(&mut self, painter: &Painter, area: Rect, transform: MapTransform) {
        let most = painter.ctx().input(|input| input.max_texture_side) as f32;
        let pixels = painter.ctx().pixels_per_point().min(most / area.size().max_elem());
        let size = [area.width(), area.height()].map(|side| ((side * pixels) as usize).max(1));
        let of = (self.version, self.dimension, transform.origin, transform.scale, size);
        if let Some(next) = self.next_squares.take() {
            self.squares = Some(next);
        }
        if self.squares.as_ref().is_none_or(|shown| shown.of != of) {
            let texture = self.make_squares(painter.ctx(), area, transform, size);
            self.next_squares = Some(Squares { of, texture });
        }
        if let Some(shown) = &self.squares {
            let whole = Rect::from_min_max(Pos2::ZERO, pos2(1.0, 1.0));
            painter.image(shown.texture.id(), area, whole, Color32::WHITE);
        }
    }

    fn make_squares(&self, context: &Context, area: Rect, transform: MapTransform, size: [usize; 2]) -> TextureHandle {
        let mut image = ColorImage::filled(size, Color32::TRANSPARENT);
        let pixels = vec2(size[0] as f32, size[1] as f32) / area.size();
        let mut paint = |square: Rect, color| {
            let [from, to] = [square.min, square.max].map(|corner| (corner - area.min) * pixels);
            fill(&mut image, from, to, color);
        };
        // Sections far away from all others stay visible.
        let least = |rect: Rect| Rect::from_center_size(rect.center(), rect.size().max(Vec2::splat(1.5)));
        for run in self.runs() {
            if transform.scale >= SEPARATE_SECTIONS {
                for step in 0..run.length {
                    let section = SectionPos::new(run.first.x, run.first.z + step);
                    paint(transform.section(section).shrink(0.5), run.color);
                }
            } else {
                let [first, last] = run.ends();
                paint(least(transform.section(first).union(transform.section(last))), run.color);
            }
        }
        context.load_texture("regions", image, TextureOptions::NEAREST)
    }

    fn paint_viewers(&self, painter: &Painter, transform: MapTransform, statistics: &WorldStatistics, color: Color32) {
        let points_to_a_column = f64::from(transform.scale) / f64::from(statistics.section_shift).exp2();
        let here = statistics.viewers.iter().filter(|(dimension, ..)| *dimension == self.dimension);
        let mut dots = Mesh::default();
        for (place, (_, column, radius)) in here.enumerate() {
            let center = transform.column(*column, statistics.section_shift);
            let radius = (f64::from(*radius) * points_to_a_column) as f32;
            if radius > 2.5 && place < MAX_CIRCLES {
                painter.circle_stroke(center, radius, Stroke::new(1.0, color.gamma_multiply(0.8)));
            }
            if place < MAX_CIRCLES {
                painter.circle(center, 2.5, color, Stroke::new(1.0, Color32::BLACK));
            } else {
                dots.add_colored_rect(Rect::from_center_size(center, Vec2::splat(4.0)), color);
            }
        }
        painter.add(Arc::new(dots));
    }
}

/// Fills a rectangle of at least one pixel, given by its corners.
fn fill(image: &mut ColorImage, from: Vec2, to: Vec2, color: Color32) {
    let [width, height] = image.size;
    let along = |from: f32, to: f32, side: usize| {
        let first = (from.round().max(0.0) as usize).min(side - 1);
        first..(to.round() as usize).clamp(first + 1, side)
    };
    for row in along(from.y, to.y, height) {
        let columns = along(from.x, to.x, width);
        image.pixels[row * width + columns.start..row * width + columns.end].fill(color);
    }
}

/// Shows the hint for the region under the pointer.
fn hint(ui: &mut Ui, region: &RegionStatistics, section: SectionPos) {
    ui.horizontal(|ui| {
        swatch(ui, region_color(region.region));
        ui.label(RichText::new(region.region.to_string()).strong());
        ui.label(state::text(region));
    });
    let (tps, tick) = (rate(region.ticks_per_second()), milliseconds(region.windows[0].median));
    ui.label(format!("{tps} TPS, {tick} ms a tick"));
    let (columns, entities) = (count(region.columns as u64), count(region.entities as u64));
    ui.label(format!("{columns} columns, {entities} entities, section {section}"));
}

/// Paints a dark line under a light one, visible on every color.
fn paint_outline(painter: &Painter, transform: MapTransform, region: &RegionStatistics) {
    for (width, color) in [(4.0, Color32::BLACK), (2.0, Color32::WHITE)] {
        for (section, side) in outline(region) {
            let square = transform.section(section);
            let ends = match side {
                (-1, 0) => [square.left_top(), square.left_bottom()],
                (1, 0) => [square.right_top(), square.right_bottom()],
                (0, -1) => [square.left_top(), square.right_top()],
                _ => [square.left_bottom(), square.right_bottom()],
            };
            painter.line_segment(ends, Stroke::new(width, color));
        }
    }
}

/// The border of the region: its sections, each with the direction to an adjacent section of another owner or none.
fn outline(region: &RegionStatistics) -> impl Iterator<Item = (SectionPos, (i64, i64))> {
    region.sections.iter().flat_map(|section| {
        let is_inside = |(x, z): (i64, i64)| {
            let beside = section.x.checked_add(x).zip(section.z.checked_add(z));
            beside.is_some_and(|(x, z)| region.contains(SectionPos::new(x, z)))
        };
        let ways = [(-1, 0), (1, 0), (0, -1), (0, 1)].into_iter();
        ways.filter(move |way| !is_inside(*way)).map(|way| (*section, way))
    })
}

impl Run {
    fn ends(&self) -> [SectionPos; 2] {
        [self.first, SectionPos::new(self.first.x, self.first.z + self.length - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bevy_terrane::region::RegionId;
    use bevy_terrane::space::TilePos;
    use bevy_terrane::view::ServerStatistics;
    use proptest::prelude::*;

    fn region(id: u64, dimension: u64, sections: &[(i64, i64)]) -> RegionStatistics {
        let sections = sections.iter().map(|(x, z)| SectionPos::new(*x, *z)).collect();
        RegionStatistics { sections, ..RegionStatistics::new(DimensionId(dimension), RegionId::new(id)) }
    }

    fn map() -> Rect {
        Rect::from_min_size(pos2(30.0, 50.0), vec2(500.0, 260.0))
    }

    #[test]
    fn without_sections_there_is_nothing_to_fit() {
        assert_eq!(MapTransform::fit([], map()), None);
    }

    #[test]
    fn the_edges_of_the_world_fit() {
        let corners = [SectionPos::new(i64::MIN, i64::MIN), SectionPos::new(i64::MAX, i64::MAX)];
        let transform = MapTransform::fit(corners, map()).unwrap();
        for corner in corners {
            assert!(map().contains_rect(transform.section(corner)));
        }
    }

    #[test]
    fn a_viewer_lies_in_its_section() {
        let transform = MapTransform::fit([SectionPos::new(-1, 0), SectionPos::new(3, 3)], map()).unwrap();
        for column in [ColumnPos::new(-1, 0), ColumnPos::new(-16, 15), ColumnPos::new(63, 63)] {
            let place = transform.column(column, 4);
            assert_eq!((transform.section_at(place), transform.column_at(place, 4)), (column.section(4), column));
        }
        let middle = transform.column(ColumnPos::new(8, 8), 4) - transform.section(SectionPos::new(0, 0)).center();
        assert!(middle.length() <= transform.scale / 16.0, "{middle:?}");
    }

    proptest! {
        #[test]
        fn every_section_fits_and_is_found_again(
            sections in prop::collection::vec((-200i64..200, -200i64..200), 1..40),
            far in -1_000_000_000i64..1_000_000_000,
            width in 80.0f32..900.0,
            height in 80.0f32..900.0,
        ) {
            let rect = Rect::from_min_size(pos2(10.0, 20.0), vec2(width, height));
            let sections: Vec<_> = sections.into_iter().map(|(x, z)| SectionPos::new(x + far, z - far)).collect();
            let transform = MapTransform::fit(sections.iter().copied(), rect).unwrap();
            prop_assert!(transform.scale > 0.0 && transform.scale <= LARGEST_SECTION);
            for section in sections {
                let square = transform.section(section);
                prop_assert!(rect.contains_rect(square), "{square:?} is not in {rect:?}");
                // The corners of the square are rounded to the precision of their coordinates.
                prop_assert!((square.width() - transform.scale).abs() < 1e-3 && square.width() > 0.0);
                prop_assert_eq!(transform.section_at(square.center()), section);
            }
        }
    }

    #[test]
    fn the_outline_of_a_region_goes_round_it() {
        let [west, east, north, south] = [(-1, 0), (1, 0), (0, -1), (0, 1)];
        let expected = [
            ((0, 0), vec![west, east, north]),
            ((0, 1), vec![west, east, south]),
            ((i64::MAX, 0), vec![west, east, north, south]),
        ];
        let expected = expected
            .into_iter()
            .flat_map(|((x, z), sides)| sides.into_iter().map(move |side| (SectionPos::new(x, z), side)));
        assert!(outline(&region(0, 1, &[(0, 0), (0, 1), (i64::MAX, 0)])).eq(expected));
    }

    #[test]
    fn the_ground_of_all_servers_lies_below_the_regions() {
        let plots = [(DimensionId(1), TilePos::new(-1, 2))].into();
        let server = ServerStatistics { incarnation: 3, plots, ..Default::default() };
        let statistics = WorldStatistics {
            servers: vec![server],
            section_shift: 4,
            regions: vec![region(0, 1, &[(-2, 4)])],
            ..Default::default()
        };
        let mut map = Map::default();
        map.update(&statistics, &Occupied::default());
        let run = |x, length, color| Run { dimension: DimensionId(1), first: SectionPos::new(x, 4), length, color };
        let ground = server_color(3);
        assert_eq!(map.runs, [run(-2, 2, ground), run(-1, 2, ground), run(-2, 1, buffer_color(RegionId::new(0)))]);
    }

    #[test]
    fn runs_join_sections_that_look_the_same() {
        let statistics = WorldStatistics {
            regions: vec![
                region(0, 1, &[(0, 0), (0, 1), (0, 2), (0, 4), (1, 5)]),
                region(1, 1, &[(1, 6)]),
                region(0, 2, &[(7, 7)]),
            ],
            ..Default::default()
        };
        let mut occupied = Occupied::default();
        for (x, z) in [(0, 0), (0, 1), (1, 6)] {
            occupied.sections.insert((DimensionId(1), SectionPos::new(x, z)));
        }
        let mut map = Map::default();
        map.update(&statistics, &occupied);
        let (own, buffer) = (region_color(RegionId::new(0)), buffer_color(RegionId::new(0)));
        let run = |dimension, x, z, length, color| {
            let dimension = DimensionId(dimension);
            Run { dimension, first: SectionPos::new(x, z), length, color }
        };
        let expected = [
            run(1, 0, 0, 2, own),
            run(1, 0, 2, 1, buffer),
            run(1, 0, 4, 1, buffer),
            run(1, 1, 5, 1, buffer),
            run(1, 1, 6, 1, region_color(RegionId::new(1))),
            run(2, 7, 7, 1, buffer),
        ];
        assert_eq!(map.runs, expected);
    }
}
