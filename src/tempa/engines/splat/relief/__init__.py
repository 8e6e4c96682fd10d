"""A picture as a relief: inflated from its silhouette, mirrored behind, without a model's weights."""
